//! Which addresses belong to this machine or to a network that is not everybody's.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// This machine.
    Loopback,
    /// A network of its owner's own.
    Private,
    /// A network segment; also where clouds give out credentials.
    LinkLocal,
    /// No address of one machine.
    NotOne,
    /// Kept for other purposes, or leading to another address.
    Special,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loopback => "one of this machine",
            Self::Private => "one of a private network",
            Self::LinkLocal => "one of the link",
            Self::NotOne => "not one of a machine",
            Self::Special => "kept for special purposes",
        })
    }
}

/// Whether an address is one that everybody could reach (RFC 6890 and its registries).
pub fn check(address: IpAddr) -> Result<(), Refusal> {
    match address {
        IpAddr::V4(address) => check_4(address),
        IpAddr::V6(address) => check_6(address),
    }
}

fn check_4(address: Ipv4Addr) -> Result<(), Refusal> {
    match address.octets() {
        [127, ..] => Err(Refusal::Loopback),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Err(Refusal::Private),
        [169, 254, ..] => Err(Refusal::LinkLocal),
        [0, ..] | [224..=255, ..] => Err(Refusal::NotOne),
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => {
            Err(Refusal::Special)
        }
        _ => Ok(()),
    }
}

fn check_6(address: Ipv6Addr) -> Result<(), Refusal> {
    if let Some(inner) = address.to_ipv4_mapped() {
        return check_4(inner);
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Err(Refusal::NotOne),
        [0, 0, 0, 0, 0, 0, 0, 1] => Err(Refusal::Loopback),
        [0xfe80..=0xfebf, ..] => Err(Refusal::LinkLocal),
        [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => Err(Refusal::Private),
        [0xff00..=0xffff, ..] => Err(Refusal::NotOne),
        // Global unicast is 2000::/3; in it are tunnels that lead to any address of version 4.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => Err(Refusal::Special),
        [0x2000..=0x3fff, ..] => Ok(()),
        _ => Err(Refusal::Special),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_not_everybodys_is_refused_however_it_is_written() {
        for (address, refusal) in [
            ("127.0.0.1", Refusal::Loopback),
            ("127.255.255.254", Refusal::Loopback),
            ("0.0.0.0", Refusal::NotOne),
            ("10.0.0.1", Refusal::Private),
            ("172.16.0.1", Refusal::Private),
            ("172.31.255.255", Refusal::Private),
            ("192.168.1.1", Refusal::Private),
            ("100.64.0.1", Refusal::Private),
            ("100.127.255.255", Refusal::Private),
            ("169.254.169.254", Refusal::LinkLocal),
            ("224.0.0.1", Refusal::NotOne),
            ("255.255.255.255", Refusal::NotOne),
            ("240.0.0.1", Refusal::NotOne),
            ("198.18.0.1", Refusal::Special),
            ("::", Refusal::NotOne),
            ("::1", Refusal::Loopback),
            ("::ffff:127.0.0.1", Refusal::Loopback),
            ("::ffff:169.254.169.254", Refusal::LinkLocal),
            ("::127.0.0.1", Refusal::Special),
            ("64:ff9b::7f00:1", Refusal::Special),
            ("64:ff9b:1::1", Refusal::Special),
            ("2002:7f00:1::", Refusal::Special),
            ("2001::1", Refusal::Special),
            ("2001:db8::1", Refusal::Special),
            ("fc00::1", Refusal::Private),
            ("fdff::1", Refusal::Private),
            ("fe80::1", Refusal::LinkLocal),
            ("fec0::1", Refusal::Private),
            ("ff02::1", Refusal::NotOne),
        ] {
            assert_eq!(check(address.parse().unwrap()), Err(refusal), "{address}");
        }
        for address in [
            "8.8.8.8",
            "172.32.0.1",
            "100.63.255.255",
            "100.128.0.1",
            "2606:4700::1111",
            "2001:200::1",
            "::ffff:8.8.8.8",
        ] {
            assert_eq!(check(address.parse().unwrap()), Ok(()), "{address}");
        }
    }
}
