//! `requestState`: what a tool wants to be told again, sealed against everyone it passes through.
//!
//! Promises: a sealed state opens only for the same principal, the same method, tool and
//! arguments, and before it expires; whatever else is wrong with it, the answer is one and the
//! same. The client can read what is inside, so nothing secret goes in (2026-07-28
//! basic/patterns/mrtr, Security Considerations).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::Sha256;

use super::digest::{self, Digest};
use super::json::{Json, JsonLimits};
use super::limits::{SEALED_STATE_BYTES, SEALED_STATE_LIFE};

/// What a state is bound to.
#[derive(Debug, Clone, Copy)]
pub struct Binding<'a> {
    /// Who asked.
    pub principal: &'a str,
    /// The method.
    pub method: &'a str,
    /// Digest of the name and arguments.
    pub request: Digest,
}

impl<'a> Binding<'a> {
    /// Binds to a call: its tool and its arguments in canonical form.
    pub fn to_call(principal: &'a str, method: &'a str, tool: &str, arguments: &[u8]) -> Self {
        let arguments = Json::parse(arguments, &JsonLimits::default()).unwrap_or(Json::Null);
        let request = Json::Array(vec![Json::String(tool.to_owned()), arguments]);
        Self { principal, method, request: digest::of(&request) }
    }
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    v: u8,
    exp: u64,
    sub: String,
    method: String,
    request: String,
    state: Value,
}

/// The state is not ours, not for this request, or too old; which, is nobody's business.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("requestState is not valid for this request: call the tool again without it")]
pub struct Unsealable;

/// Seals and opens state with one key.
#[derive(Clone)]
pub struct Sealer {
    key: [u8; 32],
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer(redacted)")
    }
}

impl Sealer {
    /// A sealer with a key that must come from the system's randomness.
    pub fn new(key: [u8; 32]) -> Self {
        Self { key }
    }

    /// A number that only this key gives, for what must differ from one process to the next.
    pub(super) fn number(&self, of: &str) -> u64 {
        let tag = self.mac(of.as_bytes()).map(|mac| mac.finalize().into_bytes());
        tag.and_then(|tag| tag.first_chunk::<8>().copied()).map_or(0, u64::from_be_bytes)
    }

    fn mac(&self, text: &[u8]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        mac.update(text);
        Some(mac)
    }

    /// Seals a state until ten minutes from `now` (Unix seconds). `None` if it is larger than 8 KiB sealed.
    pub fn seal(&self, now: u64, binding: Binding<'_>, state: Value) -> Option<String> {
        let sealed = Sealed {
            v: 1,
            exp: now.saturating_add(SEALED_STATE_LIFE.as_secs()),
            sub: binding.principal.to_owned(),
            method: binding.method.to_owned(),
            request: binding.request.to_string(),
            state,
        };
        let payload = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&sealed).ok()?);
        let tag = URL_SAFE_NO_PAD.encode(self.mac(payload.as_bytes())?.finalize().into_bytes());
        Some(format!("{payload}.{tag}")).filter(|text| text.len() <= SEALED_STATE_BYTES)
    }

    /// Opens what [`Sealer::seal`] made, for the same binding and in time. The binding, which takes a pass over the
    /// arguments, is asked for only once the seal holds.
    pub fn open<'a>(&self, now: u64, text: &str, binding: impl FnOnce() -> Binding<'a>) -> Result<Value, Unsealable> {
        let (payload, tag) = text.split_once('.').filter(|_| text.len() <= SEALED_STATE_BYTES).ok_or(Unsealable)?;
        let tag = URL_SAFE_NO_PAD.decode(tag).map_err(|_| Unsealable)?;
        self.mac(payload.as_bytes()).ok_or(Unsealable)?.verify_slice(&tag).map_err(|_| Unsealable)?;
        let bytes = URL_SAFE_NO_PAD.decode(payload).map_err(|_| Unsealable)?;
        let sealed: Sealed = serde_json::from_slice(&bytes).map_err(|_| Unsealable)?;
        let in_time = sealed.exp > now && sealed.exp <= now.saturating_add(SEALED_STATE_LIFE.as_secs());
        if sealed.v != 1 || !in_time {
            return Err(Unsealable);
        }
        let binding = binding();
        let fits = sealed.sub == binding.principal
            && sealed.method == binding.method
            && sealed.request == binding.request.to_string();
        fits.then_some(sealed.state).ok_or(Unsealable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000_000;

    fn binding(principal: &'static str, tool: &str, arguments: &str) -> Binding<'static> {
        Binding::to_call(principal, "tools/call", tool, arguments.as_bytes())
    }

    #[test]
    fn state_opens_for_the_same_call_however_its_arguments_are_spelled() {
        let sealer = Sealer::new([7; 32]);
        let text = sealer.seal(NOW, binding("local", "t", r#"{"a":1,"b":2}"#), Value::from(5)).unwrap();
        assert_eq!(sealer.open(NOW + 599, &text, || binding("local", "t", r#"{ "b":2, "a":1 }"#)), Ok(Value::from(5)));
    }

    #[test]
    fn state_opens_for_no_other_principal_tool_argument_method_key_or_time() {
        let sealer = Sealer::new([7; 32]);
        let good = binding("local", "t", "{}");
        let text = sealer.seal(NOW, good, Value::Null).unwrap();
        for other in [binding("eve", "t", "{}"), binding("local", "u", "{}"), binding("local", "t", r#"{"a":1}"#)] {
            assert_eq!(sealer.open(NOW, &text, || other), Err(Unsealable));
        }
        assert_eq!(sealer.open(NOW, &text, || Binding { method: "prompts/get", ..good }), Err(Unsealable));
        assert_eq!(sealer.open(NOW + 600, &text, || good), Err(Unsealable));
        assert_eq!(sealer.open(NOW - 1, &text, || good), Err(Unsealable), "a clock set back does not extend it");
        assert_eq!(Sealer::new([8; 32]).open(NOW, &text, || good), Err(Unsealable));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_refused() {
        let sealer = Sealer::new([7; 32]);
        let good = binding("local", "t", "{}");
        let text = sealer.seal(NOW, good, serde_json::json!({"step": 2})).unwrap();
        for index in 0..text.len() {
            assert!(sealer.open(NOW, text.get(..index).unwrap(), || good).is_err());
            for bit in 0..7 {
                let mut bytes = text.clone().into_bytes();
                bytes[index] ^= 1 << bit;
                let changed = String::from_utf8(bytes).unwrap();
                assert!(sealer.open(NOW, &changed, || good).is_err(), "{index} {bit}");
            }
        }
        assert!(sealer.open(NOW, &"x".repeat(1 << 20), || good).is_err());
        assert_eq!(sealer.seal(NOW, good, Value::String("x".repeat(9000))), None, "too large to come back");
    }
}
