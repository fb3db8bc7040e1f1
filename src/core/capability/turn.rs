//! Agents that are not to be driven from within a turn that they drive themselves.
//!
//! Promises: off unless the environment says that this server works for a managed turn; then the listed actions of agents
//! are refused, whatever the case of their letters.

/// Says that this server works for a managed turn: `1`, `true`, `yes` or `on`.
pub const MANAGED: &str = "AAT_MCP_MANAGED_TURN";
/// What is refused then: `agent:action`, separated by commas.
pub const BLOCKED: &str = "AAT_MCP_MANAGED_TURN_BLOCK";

const BLOCKED_BY_DEFAULT: &str = "orchestrator:drive";

/// The actions of agents that are refused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManagedTurn(Vec<(String, String)>);

impl ManagedTurn {
    /// As the environment says.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let on = variable(MANAGED).map(|said| said.trim().to_lowercase());
        if !on.is_some_and(|on| ["1", "true", "yes", "on"].contains(&on.as_str())) {
            return Self::default();
        }
        let list = variable(BLOCKED).unwrap_or_else(|| BLOCKED_BY_DEFAULT.to_owned()).to_lowercase();
        let pairs = list.split(',').filter_map(|pair| {
            let (agent, action) = pair.split_once(':')?;
            Some((agent.trim().to_owned(), action.trim().to_owned()))
        });
        Self(pairs.collect())
    }

    /// Whether an agent's action is refused.
    pub fn refuses(&self, agent: &str, action: Option<&str>) -> bool {
        let (agent, action) = (agent.to_lowercase(), action.unwrap_or_default().to_lowercase());
        self.0.iter().any(|(a, b)| *a == agent && *b == action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(on: Option<&str>, list: Option<&str>) -> ManagedTurn {
        ManagedTurn::read(|name| if name == MANAGED { on.map(str::to_owned) } else { list.map(str::to_owned) })
    }

    #[test]
    fn outside_a_managed_turn_nothing_is_refused() {
        for off in [None, Some(""), Some("0"), Some("no")] {
            assert!(!turn(off, Some("a:b")).refuses("a", Some("b")));
        }
    }

    #[test]
    fn inside_one_the_default_pair_is_refused_in_any_case_of_letters() {
        for on in ["1", "true", "Yes", " on "] {
            assert!(turn(Some(on), None).refuses("Orchestrator", Some("DRIVE")));
        }
        assert!(!turn(Some("1"), None).refuses("orchestrator", Some("status")));
        assert!(!turn(Some("1"), None).refuses("orchestrator", None));
    }

    #[test]
    fn the_list_replaces_the_default_and_what_is_no_pair_counts_for_nothing() {
        let turn = turn(Some("1"), Some(" Reporter:Write , nonsense,x:y"));
        assert!(turn.refuses("reporter", Some("write")) && turn.refuses("x", Some("y")));
        assert!(!turn.refuses("orchestrator", Some("drive")) && !turn.refuses("nonsense", None));
    }
}
