//! An expression of the Common Expression Language: what it may be, and what it comes to.

use std::collections::HashMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue};
use cel::{Context, Env, Program, Value};

use super::Declared;
use crate::protocol::json::JsonLimits;
use crate::protocol::{Arguments, Json};
use crate::surface::problem::did_you_mean;

/// Longest expression, bytes.
const LENGTH: usize = 1000;
/// Deepest nesting of brackets, and most question marks, each of which the parser enters one by one.
const BRACKETS: usize = 16;
/// Deepest expression, which is evaluated on the threads that serve.
const DEPTH: usize = 32;
/// The parser goes one step deeper for each part of a chain, such as `1 + 1 + 1`; its steps are large.
const STACK: usize = 64 * 1024 * 1024;

/// What an expression may use.
const VARIABLES: [&str; 3] = ["args", "tool", "caller"];
/// What stands for a type.
const TYPES: [&str; 9] = ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "uint"];
/// The functions that it may call, beside operators.
const FUNCTIONS: [&str; 12] = [
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "string",
    "int",
    "uint",
    "double",
    "bytes",
    "type",
    "bool",
];
/// The macros, for a suggestion: the parser knows them.
const MACROS: [&str; 4] = ["has", "all", "exists", "exists_one"];
/// The calls that come to no truth.
const NO_TRUTH: [&str; 13] =
    ["_-_", "_+_", "_*_", "_/_", "_%_", "-_", "size", "string", "int", "uint", "double", "bytes", "type"];

/// What every expression is evaluated in: made once, for it is much larger than any expression.
static STANDARD: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// See the module.
pub(super) struct Expression {
    source: String,
    program: Program,
}

impl std::fmt::Debug for Expression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Expression").field(&self.source).finish()
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

/// What is wrong with an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unfit {
    /// What.
    pub(crate) problem: String,
    /// How to mend it.
    pub(crate) remedy: String,
    /// The bytes of the expression that it is about, where that is known.
    pub(crate) part: Option<Range<usize>>,
}

fn unfit(problem: impl Into<String>, remedy: &str, part: Option<Range<usize>>) -> Unfit {
    Unfit { problem: problem.into(), remedy: remedy.to_owned(), part }
}

impl Expression {
    /// Reads an expression, on a thread with room for whatever the parser does with one that passes for short.
    pub(super) fn compile(source: &str) -> Result<Self, Unfit> {
        bounded(source)?;
        std::thread::scope(|scope| {
            let reader = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || Self::read(source));
            let read = reader.ok().and_then(|reader| reader.join().ok());
            read.unwrap_or_else(|| {
                Err(unfit("it cannot be read", "write an expression such as `args.amount > 100`", None))
            })
        })
    }

    fn read(source: &str) -> Result<Self, Unfit> {
        // The grammar's code is generated and asserts much.
        let parsed = catch_unwind(|| Program::compile(source));
        let program = match parsed {
            Ok(Ok(program)) => program,
            Ok(Err(errors)) => {
                let first = errors.errors.first();
                let problem = first.map_or_else(|| "it cannot be read".to_owned(), |error| error.msg.clone());
                let part = first.and_then(|error| place(source, error.pos));
                return Err(unfit(problem, "write an expression such as `args.amount > 100`", part));
            }
            Err(_) => return Err(unfit("it cannot be read", "write an expression such as `args.amount > 100`", None)),
        };
        let walk = Walk { source, program: &program };
        walk.look(program.expression(), &mut Vec::new(), 0, false)?;
        if !may_be_true(&program.expression().expr) {
            let remedy = "compare it with something, such as `size(args.path) > 0`";
            return Err(unfit("it comes to no truth", remedy, Some(0..source.len())));
        }
        Ok(Self { source: source.to_owned(), program })
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Whether a call is as it says; why that cannot be told. The text says nothing of the arguments.
    pub(super) fn matches(&self, given: &Given) -> Result<bool, String> {
        let run = || {
            let mut context = Context::with_env(Arc::clone(&STANDARD));
            context.add_variable_from_value("args", given.arguments.clone());
            context.add_variable_from_value("tool", given.tool.clone());
            context.add_variable_from_value("caller", given.caller.clone());
            self.program.execute(&context)
        };
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(Value::Bool(truth))) => Ok(truth),
            Ok(Ok(other)) => Err(format!("it came to a {} and not to true or false", other.type_of())),
            Ok(Err(error)) => Err(kind(&error).to_owned()),
            Err(_) => Err("the evaluation broke down".to_owned()),
        }
    }
}

/// What is wrong, without a value of the arguments.
fn kind(error: &cel::ExecutionError) -> &'static str {
    use cel::ExecutionError as E;
    match error {
        E::NoSuchKey(_) => "an argument is not given: ask with has() first",
        E::NoSuchOverload(_) | E::UnexpectedType { .. } | E::UnsupportedTargetType { .. } => {
            "a value is of another kind than the expression expects"
        }
        E::ValuesNotComparable(..) => "values of different kinds are compared",
        E::Overflow(..) => "a number is too large",
        E::DivisionByZero(_) | E::RemainderByZero(_) => "it divides by zero",
        E::IndexOutOfBounds(_) => "an index is beyond the end of a list",
        _ => "it cannot be evaluated",
    }
}

/// What expressions are told of a call.
pub(super) struct Given {
    arguments: Value,
    tool: Value,
    caller: Value,
}

impl Given {
    pub(super) fn new(tool: &str, caller: &str, arguments: &Arguments, declared: &Declared) -> Self {
        let limits = JsonLimits { depth: 127, keys: usize::MAX, items: usize::MAX };
        let read = |text: &[u8]| Json::parse(text, &limits).map_or(Value::Null, |value| value_of(&value));
        let mut all: HashMap<String, Value> = HashMap::new();
        for (name, value) in &declared.defaults {
            all.insert(name.clone(), value_of(value));
        }
        for (name, value) in arguments.iter() {
            all.insert(name.to_owned(), read(value.as_bytes()));
        }
        for name in &declared.paths {
            if let Some(Value::String(path)) = all.get_mut(name) {
                *path = Arc::new(shortest(path));
            }
        }
        let text = |text: &str| Value::String(Arc::new(text.to_owned()));
        Self { arguments: all.into(), tool: text(tool), caller: text(caller) }
    }
}

/// A relative path without what changes nothing of where it leads.
fn shortest(path: &str) -> String {
    let start = if path.starts_with('/') { "/" } else { "" };
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    format!("{start}{}", parts.join("/"))
}

/// A value of JSON: a whole number that fits is one, everything else of numbers is a fraction.
fn value_of(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::String(text) => Value::String(Arc::new(text.clone())),
        Json::Number(text) => match (text.parse::<i64>(), text.parse::<u64>(), text.parse::<f64>()) {
            (Ok(whole), _, _) => Value::Int(whole),
            (_, Ok(whole), _) => Value::UInt(whole),
            (_, _, Ok(fraction)) => Value::Float(fraction),
            _ => Value::Null,
        },
        Json::Array(items) => Value::List(Arc::new(items.iter().map(value_of).collect())),
        Json::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), value_of(value))).collect::<HashMap<_, _>>().into()
        }
    }
}

/// Refuses what the parser would be too long about, or too deep in.
fn bounded(source: &str) -> Result<(), Unfit> {
    let shorter = "say it in several rules";
    if source.len() > LENGTH {
        return Err(unfit(format!("it is longer than {LENGTH} bytes"), shorter, None));
    }
    let (mut depth, mut questions) = (0usize, 0usize);
    for byte in source.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'?' => questions += 1,
            _ => {}
        }
        if depth > BRACKETS || questions > BRACKETS {
            return Err(unfit(format!("it is nested more than {BRACKETS} deep"), shorter, None));
        }
    }
    Ok(())
}

/// The byte of a line and a column, both counted from 1.
fn place(source: &str, (line, column): (isize, isize)) -> Option<Range<usize>> {
    let line = usize::try_from(line).ok()?.checked_sub(1)?;
    let column = usize::try_from(column).ok()?.saturating_sub(1);
    let before: usize = source.split_inclusive('\n').take(line).map(str::len).sum();
    let rest = source.get(before..)?;
    let (offset, character) = rest.char_indices().nth(column)?;
    Some(before + offset..before + offset + character.len_utf8())
}

/// One look through an expression.
struct Walk<'e> {
    source: &'e str,
    program: &'e Program,
}

impl Walk<'_> {
    /// Refuses what is unknown, and what would cost more than the arguments are long.
    fn look(&self, at: &IdedExpr, bound: &mut Vec<String>, depth: usize, looping: bool) -> Result<(), Unfit> {
        if depth > DEPTH {
            return Err(unfit(format!("it is more than {DEPTH} deep"), "say it in several rules", None));
        }
        let depth = depth + 1;
        match &at.expr {
            Expr::Ident(name) => self.variable(at, name, bound),
            Expr::Literal(_) | Expr::Unspecified => Ok(()),
            Expr::Select(select) => self.look(&select.operand, bound, depth, looping),
            Expr::Call(call) => {
                self.function(at, &call.func_name)?;
                if looping {
                    self.cheap(at, &call.func_name, &call.args)?;
                }
                let mut parts = call.target.iter().map(|target| &**target).chain(&call.args);
                parts.try_for_each(|part| self.look(part, bound, depth, looping))
            }
            Expr::List(list) => list.elements.iter().try_for_each(|item| self.look(item, bound, depth, looping)),
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => {
                    self.look(&entry.key, bound, depth, looping)?;
                    self.look(&entry.value, bound, depth, looping)
                }
                EntryExpr::StructField(field) => self.look(&field.value, bound, depth, looping),
            }),
            Expr::Struct(_) => Err(self.of(at, "it makes a structure", "compare the arguments one by one")),
            Expr::Comprehension(each) => {
                if looping {
                    let remedy = "look at one list at a time: a list in a list would take too long";
                    return Err(self.of(at, "it goes through a list for each item of another", remedy));
                }
                if matches!(each.accu_init.expr, Expr::List(_)) {
                    let remedy = "use `all`, `exists` or `exists_one`";
                    return Err(self.of(at, "`map` and `filter` are not known here", remedy));
                }
                self.look(&each.iter_range, bound, depth, true)?;
                let before = bound.len();
                bound.extend([each.iter_var.clone(), each.accu_var.clone()]);
                bound.extend(each.iter_var2.clone());
                let parts = [&each.accu_init, &each.loop_cond, &each.loop_step, &each.result];
                let looked = parts.into_iter().try_for_each(|part| self.look(part, bound, depth, true));
                bound.truncate(before);
                looked
            }
        }
    }

    /// Refuses what takes long for each item of a list: a pattern that is read anew, a search of another list.
    fn cheap(&self, at: &IdedExpr, name: &str, parts: &[IdedExpr]) -> Result<(), Unfit> {
        match name {
            "matches" => {
                Err(self.of(at, "it reads a pattern for each item of a list", "use `contains`, `startsWith` or `==`"))
            }
            "@in" if !parts.get(1).is_some_and(|list| matches!(list.expr, Expr::List(_))) => {
                let remedy = "write the list out, such as `x in ['a', 'b']`";
                Err(self.of(at, "it looks through one list for each item of another", remedy))
            }
            _ => Ok(()),
        }
    }

    fn variable(&self, at: &IdedExpr, name: &str, bound: &[String]) -> Result<(), Unfit> {
        if VARIABLES.contains(&name) || TYPES.contains(&name) || bound.iter().any(|known| known == name) {
            return Ok(());
        }
        let meant = did_you_mean(name, VARIABLES);
        let remedy = meant.map_or_else(
            || "use `args`, `tool` or `caller`; an argument is `args.name`, a text stands in quotes".to_owned(),
            |meant| format!("did you mean `{meant}`?"),
        );
        Err(self.of(at, &format!("{name:?} is no variable here"), &remedy))
    }

    fn function(&self, at: &IdedExpr, name: &str) -> Result<(), Unfit> {
        let is_operator = name.starts_with(['_', '@', '!', '-']);
        if is_operator || FUNCTIONS.contains(&name) {
            return Ok(());
        }
        let meant = did_you_mean(name, FUNCTIONS.into_iter().chain(MACROS));
        let remedy = meant
            .map_or_else(|| format!("use one of {}", FUNCTIONS.join(", ")), |meant| format!("did you mean `{meant}`?"));
        Err(self.of(at, &format!("{name:?} is no function here"), &remedy))
    }

    fn of(&self, at: &IdedExpr, problem: &str, remedy: &str) -> Unfit {
        let (start, stop) = match self.program.source_info().offset_for(at.id) {
            Some((start, stop)) => (usize::try_from(start).ok(), usize::try_from(stop).ok()),
            None => (None, None),
        };
        let byte = |nth: usize| self.source.char_indices().nth(nth).map_or(self.source.len(), |(byte, _)| byte);
        let part = start.zip(stop).map(|(start, stop)| byte(start)..byte(stop.saturating_add(1)));
        unfit(problem, remedy, part.filter(|part| part.start < part.end))
    }
}

/// Whether an expression may come to true or false, as far as that can be told without arguments.
fn may_be_true(expression: &Expr) -> bool {
    match expression {
        Expr::Literal(literal) => matches!(literal, LiteralValue::Boolean(_)),
        Expr::List(_) | Expr::Map(_) | Expr::Struct(_) | Expr::Unspecified => false,
        Expr::Ident(name) => !VARIABLES.contains(&name.as_str()) && !TYPES.contains(&name.as_str()),
        Expr::Call(call) if call.func_name == "_?_:_" => {
            call.args.iter().skip(1).all(|branch| may_be_true(&branch.expr))
        }
        Expr::Call(call) => !NO_TRUTH.contains(&call.func_name.as_str()),
        Expr::Comprehension(_) | Expr::Select(_) => true,
    }
}

#[cfg(test)]
mod tests;
