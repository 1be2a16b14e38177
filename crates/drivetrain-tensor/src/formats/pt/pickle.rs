//! A pickle machine that builds plain values and runs nothing.
//!
//! Opcodes: <https://docs.python.org/3/library/pickletools.html>, protocols 2 to 5 as PyTorch writes them. A
//! pickle asks for functions by name and "calls" them; here a name is looked up in the short list of
//! [`Global`], and a call makes one of the values of [`Value`]. Memory is bounded by [`WORK_LIMIT`] values
//! and list items, time by the pickle's length.

use super::opcode as op;
use super::value::{Global, Id, Value};
use crate::formats::disk::Place;
use drivetrain_core::{Error, Result};

/// The most values, list items and memo entries that a pickle may make, together.
pub const WORK_LIMIT: usize = 4_000_000;

// No value has this number.
const UNUSED: Id = Id::MAX;

/// Runs a pickle; gives all values it made and which of them is the result.
#[track_caller]
pub fn run<'a>(place: &Place, bytes: &'a [u8]) -> Result<(Vec<Value<'a>>, Id)> {
    let mut machine = Machine {
        place,
        bytes,
        at: 0,
        opcode_at: 0,
        values: Vec::new(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: Vec::new(),
        work: 0,
    };
    loop {
        machine.opcode_at = machine.at;
        let opcode = machine.take(1)?[0];
        if opcode == op::STOP {
            let root = machine.pop()?;
            return Ok((machine.values, root));
        }
        machine.step(opcode)?;
    }
}

struct Machine<'a, 'p> {
    place: &'p Place,
    bytes: &'a [u8],
    at: usize,
    opcode_at: usize,
    values: Vec<Value<'a>>,
    stack: Vec<Id>,
    // Lengths of the stack.
    marks: Vec<usize>,
    // By number; `UNUSED` where nothing was put.
    memo: Vec<Id>,
    work: usize,
}

impl<'a> Machine<'a, '_> {
    #[track_caller]
    fn step(&mut self, opcode: u8) -> Result<()> {
        match opcode {
            op::MARK => {
                self.spend(1)?;
                self.marks.push(self.stack.len());
                Ok(())
            }
            op::PROTO => self.take(1).map(drop),
            op::FRAME => self.take(8).map(drop),
            op::POP => match self.marks.pop_if(|mark| *mark == self.stack.len()) {
                Some(_) => Ok(()),
                None => self.pop().map(drop),
            },
            op::POP_MARK => self.pop_mark().map(drop),
            op::DUP => self.top().and_then(|top| self.push_id(top)),
            op::BINGET | op::LONG_BINGET | op::BINPUT | op::LONG_BINPUT | op::MEMOIZE => {
                self.step_memo(opcode)
            }
            op::APPEND | op::APPENDS | op::SETITEM | op::SETITEMS | op::ADDITEMS => {
                self.step_fill(opcode)
            }
            op::GLOBAL | op::STACK_GLOBAL | op::REDUCE | op::NEWOBJ | op::BUILD | op::BINPERSID => {
                self.step_object(opcode)
            }
            _ => {
                let value = match opcode {
                    op::EMPTY_TUPLE
                    | op::TUPLE
                    | op::TUPLE1
                    | op::TUPLE2
                    | op::TUPLE3
                    | op::EMPTY_LIST
                    | op::LIST
                    | op::EMPTY_DICT
                    | op::DICT
                    | op::EMPTY_SET
                    | op::FROZENSET => self.container(opcode)?,
                    _ => self.scalar(opcode)?,
                };
                self.push(value).map(drop)
            }
        }
    }

    // Numbers, texts and bytes, which stand in the pickle itself.
    #[track_caller]
    fn scalar(&mut self, opcode: u8) -> Result<Value<'a>> {
        Ok(match opcode {
            op::NONE => Value::None,
            op::NEWTRUE => Value::Bool(true),
            op::NEWFALSE => Value::Bool(false),
            op::BININT => Value::Int(i64::from(i32::from_le_bytes(self.array()?))),
            op::BININT1 => Value::Int(i64::from(self.take(1)?[0])),
            op::BININT2 => Value::Int(i64::from(u16::from_le_bytes(self.array()?))),
            op::BINFLOAT => Value::Float(f64::from_be_bytes(self.array()?)),
            op::LONG1 => integer(self.counted(1)?),
            op::LONG4 => integer(self.counted(4)?),
            op::SHORT_BINUNICODE => self.text(1)?,
            op::BINUNICODE => self.text(4)?,
            op::BINUNICODE8 => self.text(8)?,
            op::SHORT_BINSTRING => python2(self.counted(1)?),
            op::BINSTRING => python2(self.counted(4)?),
            op::SHORT_BINBYTES => opaque_bytes(self.counted(1)?),
            op::BINBYTES => opaque_bytes(self.counted(4)?),
            op::BINBYTES8 | op::BYTEARRAY8 => opaque_bytes(self.counted(8)?),
            _ => {
                let shown = opcode.escape_ascii();
                return Err(self.error(format!("unknown opcode `{shown}`")));
            }
        })
    }

    #[track_caller]
    fn container(&mut self, opcode: u8) -> Result<Value<'a>> {
        Ok(match opcode {
            op::EMPTY_TUPLE => Value::Tuple(Vec::new()),
            op::EMPTY_LIST => Value::List(Vec::new()),
            op::EMPTY_DICT => Value::Dict(Vec::new()),
            op::TUPLE => Value::Tuple(self.pop_mark()?),
            op::LIST => Value::List(self.pop_mark()?),
            op::DICT => Value::Dict(self.pop_pairs()?),
            op::EMPTY_SET => Value::Opaque("set"),
            op::FROZENSET => {
                self.pop_mark()?;
                Value::Opaque("frozenset")
            }
            _ => {
                let mut items = Vec::new();
                for _ in 0..1 + opcode - op::TUPLE1 {
                    items.push(self.pop()?);
                }
                items.reverse();
                Value::Tuple(items)
            }
        })
    }

    #[track_caller]
    fn step_memo(&mut self, opcode: u8) -> Result<()> {
        let number = match opcode {
            op::BINGET | op::BINPUT => usize::from(self.take(1)?[0]),
            op::LONG_BINGET | op::LONG_BINPUT => u32::from_le_bytes(self.array()?) as usize,
            _ => self.memo.len(),
        };
        if matches!(opcode, op::BINGET | op::LONG_BINGET) {
            let known = self.memo.get(number).copied().filter(|&id| id != UNUSED);
            let id = known.ok_or_else(|| self.error(format!("nothing has the memo {number}")))?;
            return self.push_id(id);
        }
        if number > WORK_LIMIT {
            return Err(self.error(format!("memo {number}, over our limit of {WORK_LIMIT}")));
        }
        let top = self.top()?;
        self.spend(1)?;
        if number >= self.memo.len() {
            self.memo.resize(number + 1, UNUSED);
        }
        self.memo[number] = top;
        Ok(())
    }

    // Items go into the list, dict or set below them.
    #[track_caller]
    fn step_fill(&mut self, opcode: u8) -> Result<()> {
        let mut items = match opcode {
            op::APPEND => vec![self.pop()?],
            op::SETITEM => {
                let value = self.pop()?;
                vec![self.pop()?, value]
            }
            _ => self.pop_mark()?,
        };
        let target = self.top()?;
        match (opcode, &mut self.values[target as usize]) {
            (op::APPEND | op::APPENDS, Value::List(list)) => list.append(&mut items),
            (op::SETITEM | op::SETITEMS, Value::Dict(dict)) if items.len() % 2 == 0 => {
                dict.extend(pairs(&items))
            }
            (op::ADDITEMS, Value::Opaque("set")) => {}
            (_, value) => {
                let what = value.describe();
                return Err(self.error(format!("{} items do not go into {what}", items.len())));
            }
        }
        Ok(())
    }

    // Names, calls, states and storages.
    #[track_caller]
    fn step_object(&mut self, opcode: u8) -> Result<()> {
        match opcode {
            op::GLOBAL => {
                let (module, name) = (self.line()?, self.line()?);
                self.global(module, name)
            }
            op::STACK_GLOBAL => {
                let (name, module) = (self.pop()?, self.pop()?);
                match (self.value(module), self.value(name)) {
                    (&Value::Text(module), &Value::Text(name)) => self.global(module, name),
                    _ => Err(self.error("a name that is no text")),
                }
            }
            op::REDUCE | op::NEWOBJ => {
                let (arguments, callable) = (self.pop()?, self.pop()?);
                self.call(callable, arguments)
            }
            op::BUILD => {
                // Attributes, such as a state dict's `_metadata`: not weights.
                self.pop()?;
                let target = self.top()?;
                match self.value(target) {
                    Value::Dict(_) | Value::Opaque(_) | Value::Tensor(..) | Value::Refused(_) => {
                        Ok(())
                    }
                    other => Err(self.error(format!("a state for {}", other.describe()))),
                }
            }
            _ => {
                let reference = self.pop()?;
                if !matches!(self.value(reference), Value::Tuple(_)) {
                    return Err(self.error("a persistent id that is no tuple"));
                }
                self.push(Value::Storage(reference)).map(drop)
            }
        }
    }

    #[track_caller]
    fn global(&mut self, module: &'a str, name: &'a str) -> Result<()> {
        match Global::resolve(module, name) {
            Some(global) => self.push(Value::Global(global)).map(drop),
            None => Err(self
                .error(format!(
                    "asks for `{module}.{name}`, which is not on the list of what weights are made of (nothing was run)"
                ))
                .help("in Python, save the weights alone: torch.save(model.state_dict(), path)")),
        }
    }

    #[track_caller]
    fn call(&mut self, callable: Id, arguments: Id) -> Result<()> {
        let (&Value::Global(function), Value::Tuple(items)) =
            (self.value(callable), self.value(arguments))
        else {
            let what = self.value(callable).describe();
            return Err(self.error(format!("a call of {what}")));
        };
        let (first, count) = (items.first().copied(), items.len());
        match (function, first) {
            (Global::OrderedDict | Global::Counter, None) | (Global::DefaultDict, _) => {
                self.push(Value::Dict(Vec::new())).map(drop)
            }
            (Global::OrderedDict, Some(list)) => {
                let dict = self.dict_of_pairs(list)?;
                self.push(dict).map(drop)
            }
            (Global::Counter, Some(dict)) if matches!(self.value(dict), Value::Dict(_)) => {
                self.push_id(dict)
            }
            (Global::Size, Some(sizes)) if matches!(self.value(sizes), Value::Tuple(_)) => {
                self.push_id(sizes)
            }
            (Global::Parameter, Some(tensor)) => self.push_id(tensor),
            (Global::Rebuild(rebuild), _) => self.push(Value::Tensor(rebuild, arguments)).map(drop),
            (Global::FromType, Some(inner)) if count == 4 => self.call_inner(inner, arguments),
            (Global::Refused(what), _) => self.push(Value::Refused(what)).map(drop),
            (Global::Opaque(what), _) => self.push(Value::Opaque(what)).map(drop),
            _ => Err(self.error(format!("a call of {function:?} with {count} arguments"))),
        }
    }

    // (function, class, its arguments, attributes): the tensor that the function makes.
    #[track_caller]
    fn call_inner(&mut self, function: Id, arguments: Id) -> Result<()> {
        let inner = match self.value(arguments) {
            Value::Tuple(items) => items[2],
            _ => arguments,
        };
        match self.value(function) {
            Value::Global(Global::Rebuild(_) | Global::Parameter) => self.call(function, inner),
            other => Err(self.error(format!("a tensor made by {}", other.describe()))),
        }
    }

    #[track_caller]
    fn dict_of_pairs(&mut self, list: Id) -> Result<Value<'a>> {
        let Value::List(items) = self.value(list) else {
            return Err(self.error("an OrderedDict of something else than a list of pairs"));
        };
        let mut dict = Vec::new();
        for &item in items {
            match self.value(item) {
                Value::Tuple(pair) | Value::List(pair) if pair.len() == 2 => {
                    dict.push((pair[0], pair[1]));
                }
                _ => return Err(self.error("an OrderedDict of something else than pairs")),
            }
        }
        // A short pickle can ask for the same long list again and again.
        self.spend(dict.len())?;
        Ok(Value::Dict(dict))
    }

    fn value(&self, id: Id) -> &Value<'a> {
        &self.values[id as usize]
    }

    #[track_caller]
    fn push(&mut self, value: Value<'a>) -> Result<()> {
        // WORK_LIMIT is far below 2^32.
        let id = self.values.len() as Id;
        self.values.push(value);
        self.push_id(id)
    }

    #[track_caller]
    fn push_id(&mut self, id: Id) -> Result<()> {
        self.spend(1)?;
        self.stack.push(id);
        Ok(())
    }

    #[track_caller]
    fn spend(&mut self, count: usize) -> Result<()> {
        self.work += count;
        if self.work > WORK_LIMIT {
            return Err(self.error(format!("more than our limit of {WORK_LIMIT} values")));
        }
        Ok(())
    }

    // A mark is a floor: what lies below belongs to somebody else.
    #[track_caller]
    fn pop(&mut self) -> Result<Id> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    #[track_caller]
    fn top(&self) -> Result<Id> {
        let floor = self.marks.last().copied().unwrap_or(0);
        let above = self.stack.get(floor..).and_then(<[Id]>::last).copied();
        above.ok_or_else(|| self.error("a value is needed, but the stack is empty"))
    }

    #[track_caller]
    fn pop_mark(&mut self) -> Result<Vec<Id>> {
        let mark = self.marks.pop();
        let mark = mark.ok_or_else(|| self.error("a mark is needed, but there is none"))?;
        Ok(self.stack.split_off(mark.min(self.stack.len())))
    }

    #[track_caller]
    fn pop_pairs(&mut self) -> Result<Vec<(Id, Id)>> {
        let items = self.pop_mark()?;
        if items.len() % 2 == 1 {
            return Err(self.error("a dict of an odd number of items"));
        }
        Ok(pairs(&items).collect())
    }

    #[track_caller]
    fn take(&mut self, count: u64) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let taken = usize::try_from(count)
            .ok()
            .and_then(|count| rest.get(..count));
        let taken = taken.ok_or_else(|| {
            self.error(format!(
                "{count} bytes are needed, but only {} follow",
                rest.len()
            ))
        })?;
        self.at += taken.len();
        Ok(taken)
    }

    #[track_caller]
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.take(N as u64)?;
        Ok(std::array::from_fn(|i| bytes[i]))
    }

    // Bytes after their little-endian length of `width` bytes.
    #[track_caller]
    fn counted(&mut self, width: u64) -> Result<&'a [u8]> {
        let digits = self.take(width)?.iter().rev();
        let count = digits.fold(0, |count, &digit| count << 8 | u64::from(digit));
        self.take(count)
    }

    #[track_caller]
    fn text(&mut self, width: u64) -> Result<Value<'a>> {
        let text = str::from_utf8(self.counted(width)?);
        text.map(Value::Text)
            .map_err(|cause| self.error(format!("a text that is not UTF-8: {cause}")))
    }

    #[track_caller]
    fn line(&mut self) -> Result<&'a str> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|&byte| byte == b'\n');
        let line = end.and_then(|end| str::from_utf8(&rest[..end]).ok());
        let line = line.ok_or_else(|| self.error("a name without end"))?;
        self.at += line.len() + 1;
        Ok(line)
    }

    #[track_caller]
    fn error(&self, message: impl std::fmt::Display) -> Error {
        let at = self.opcode_at;
        self.place.format(format!("pickle, byte {at}: {message}"))
    }
}

fn pairs(items: &[Id]) -> impl Iterator<Item = (Id, Id)> {
    let (pairs, _) = items.as_chunks::<2>();
    pairs.iter().map(|&[key, value]| (key, value))
}

// Little-endian two's complement of any length.
fn integer<'a>(bytes: &[u8]) -> Value<'a> {
    let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut wide = [if negative { 0xff } else { 0 }; 8];
    match wide.get_mut(..bytes.len()) {
        Some(low) => {
            low.copy_from_slice(bytes);
            Value::Int(i64::from_le_bytes(wide))
        }
        None => Value::Opaque("int of more than 64 bits"),
    }
}

fn python2(bytes: &[u8]) -> Value<'_> {
    match str::from_utf8(bytes) {
        Ok(text) if text.is_ascii() => Value::Text(text),
        _ => Value::Opaque("bytes"),
    }
}

fn opaque_bytes<'a>(_: &[u8]) -> Value<'a> {
    Value::Opaque("bytes")
}
