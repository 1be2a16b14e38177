//! Ops as a code and typed attributes, and back: how they are logged, recorded and sent through the plugin ABI.
//!
//! The codes ([`codes`]), the numbers of the small enums (`op::kinds`) and of [`DType`], and the order of the
//! attributes are written out and part of the ABI: they are only ever appended to. A decoder that meets a
//! code or an attribute it does not know says "unsupported", and the sender decomposes the op.

pub mod codes;
mod composite;
mod primitive;

use crate::{DType, Error, Op, Result, Scalar};

/// An op in flat form.
#[derive(Clone, Debug, PartialEq)]
pub struct Encoded {
    /// Which op: one of [`codes`].
    pub code: u32,
    /// Its attributes, in the order that [`codes`] says.
    pub attributes: Vec<Attribute>,
}

/// One attribute. Floats are equal when their bits are.
#[derive(Clone, Debug)]
pub enum Attribute {
    /// An integer, a size, a dimension, or the number of an enum's variant.
    Int(i64),
    /// A float.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// Several integers.
    Ints(Vec<i64>),
}

impl PartialEq for Attribute {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Attribute::Int(a), Attribute::Int(b)) => a == b,
            (Attribute::Float(a), Attribute::Float(b)) => a.to_bits() == b.to_bits(),
            (Attribute::Bool(a), Attribute::Bool(b)) => a == b,
            (Attribute::Ints(a), Attribute::Ints(b)) => a == b,
            _ => false,
        }
    }
}

impl Attribute {
    const fn kind(&self) -> &'static str {
        match self {
            Attribute::Int(_) => "Int",
            Attribute::Float(_) => "Float",
            Attribute::Bool(_) => "Bool",
            Attribute::Ints(_) => "Ints",
        }
    }
}

impl Op {
    /// Its number in the plugin ABI.
    pub const fn code(&self) -> u32 {
        match self {
            Op::Primitive(op) => primitive::code(op),
            Op::Composite(op) => composite::code(op),
        }
    }

    /// Its flat form.
    ///
    /// ```
    /// use drivetrain_core::{CompareOp, Op, Primitive};
    /// let op = Op::from(Primitive::Compare(CompareOp::Lt));
    /// assert_eq!(Op::decode(&op.encode())?, op);
    /// # Ok::<(), drivetrain_core::Error>(())
    /// ```
    pub fn encode(&self) -> Encoded {
        let mut writer = Writer::default();
        match self {
            Op::Primitive(op) => primitive::encode(op, &mut writer),
            Op::Composite(op) => composite::encode(op, &mut writer),
        }
        Encoded {
            code: self.code(),
            attributes: writer.attributes,
        }
    }

    /// The op of a flat form, which may come from anywhere. Whether it fits its operands is for
    /// [`infer`](crate::infer) to say.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unsupported`] for an unknown code, enum number or surplus attribute;
    /// [`crate::ErrorKind::Format`] for a missing attribute or one of a wrong type or range.
    pub fn decode(encoded: &Encoded) -> Result<Op> {
        let mut reader = Reader {
            code: encoded.code,
            attributes: &encoded.attributes,
            at: 0,
        };
        let op = if encoded.code < codes::FIRST_COMPOSITE {
            Op::Primitive(primitive::decode(&mut reader)?)
        } else {
            Op::Composite(composite::decode(&mut reader)?)
        };
        reader.finish()?;
        Ok(op)
    }

    /// The number of the enum variant that parametrises it, 0 where there is none: together with the code what
    /// a device's answer about support depends on.
    pub(crate) fn variant(&self) -> u32 {
        match self {
            Op::Primitive(op) => primitive::variant(op),
            Op::Composite(op) => composite::variant(op),
        }
    }
}

/// Collects attributes.
#[derive(Default)]
struct Writer {
    attributes: Vec<Attribute>,
}

impl Writer {
    fn int(&mut self, value: i64) -> &mut Self {
        self.attributes.push(Attribute::Int(value));
        self
    }

    fn size(&mut self, value: usize) -> &mut Self {
        self.int(int_of_size(value))
    }

    fn code(&mut self, value: u32) -> &mut Self {
        self.int(value.into())
    }

    fn float(&mut self, value: f64) -> &mut Self {
        self.attributes.push(Attribute::Float(value));
        self
    }

    fn bool(&mut self, value: bool) -> &mut Self {
        self.attributes.push(Attribute::Bool(value));
        self
    }

    fn sizes(&mut self, values: &[usize]) -> &mut Self {
        let ints = values.iter().map(|&v| int_of_size(v)).collect();
        self.attributes.push(Attribute::Ints(ints));
        self
    }

    fn steps(&mut self, values: &[isize]) -> &mut Self {
        let ints = values.iter().map(|&v| v as i64).collect();
        self.attributes.push(Attribute::Ints(ints));
        self
    }

    fn scalar(&mut self, value: Scalar) -> &mut Self {
        match value {
            Scalar::F64(value) => self.float(value),
            Scalar::I64(value) => self.int(value),
            Scalar::Bool(value) => self.bool(value),
        }
    }
}

/// Sizes past i64 are past any memory; inference refuses the largest too.
fn int_of_size(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Takes attributes one after the other.
struct Reader<'a> {
    code: u32,
    attributes: &'a [Attribute],
    at: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<&'a Attribute> {
        let next = self.attributes.get(self.at).ok_or_else(|| {
            Error::format(
                "decode",
                format!("op code {} has only {} attributes", self.code, self.at),
            )
        })?;
        self.at += 1;
        Ok(next)
    }

    /// The error of the attribute taken last.
    fn refuse(&self, got: &Attribute, wanted: &str) -> Error {
        Error::format(
            "decode",
            format!(
                "attribute {} of op code {} is {got:?}, {wanted} expected",
                self.at - 1,
                self.code
            ),
        )
    }

    fn int(&mut self) -> Result<i64> {
        match self.next()? {
            Attribute::Int(value) => Ok(*value),
            other => Err(self.refuse(other, "Int")),
        }
    }

    /// An integer that fits another type: a size, a dimension, a code.
    fn fitting<T: TryFrom<i64>>(&mut self, wanted: &str) -> Result<T> {
        let value = self.int()?;
        T::try_from(value).map_err(|_| self.refuse(&Attribute::Int(value), wanted))
    }

    fn size(&mut self) -> Result<usize> {
        self.fitting("a size")
    }

    fn dim(&mut self) -> Result<u8> {
        self.fitting("a dimension")
    }

    fn dtype(&mut self) -> Result<DType> {
        DType::from_code(self.fitting("a dtype")?)
    }

    /// A variant of an enum by its number.
    fn variant<T>(&mut self, from_code: impl Fn(u32) -> Option<T>) -> Result<T> {
        let code = self.fitting("a variant")?;
        from_code(code).ok_or_else(|| {
            Error::unsupported(
                "decode",
                format!("variant {code} of op code {} is unknown", self.code),
            )
        })
    }

    fn float(&mut self) -> Result<f64> {
        match self.next()? {
            Attribute::Float(value) => Ok(*value),
            other => Err(self.refuse(other, "Float")),
        }
    }

    fn bool(&mut self) -> Result<bool> {
        match self.next()? {
            Attribute::Bool(value) => Ok(*value),
            other => Err(self.refuse(other, "Bool")),
        }
    }

    fn ints(&mut self) -> Result<&'a [i64]> {
        match self.next()? {
            Attribute::Ints(values) => Ok(values),
            other => Err(self.refuse(other, "Ints")),
        }
    }

    /// Up to `N` integers, the rest `neutral`; and how many there were.
    fn array<T: TryFrom<i64> + Copy, const N: usize>(
        &mut self,
        neutral: T,
    ) -> Result<([T; N], usize)> {
        let values = self.ints()?;
        let mut array = [neutral; N];
        let refuse = |reader: &Self| {
            let got = Attribute::Ints(values.to_vec());
            reader.refuse(&got, &format!("up to {N} sizes"))
        };
        if values.len() > N {
            return Err(refuse(self));
        }
        for (slot, &value) in array.iter_mut().zip(values) {
            *slot = T::try_from(value).map_err(|_| refuse(self))?;
        }
        Ok((array, values.len()))
    }

    /// Exactly three sizes.
    fn three(&mut self) -> Result<[usize; 3]> {
        match self.array(1)? {
            (array, 3) => Ok(array),
            (_, count) => Err(Error::format(
                "decode",
                format!("{count} sizes for op code {}, 3 expected", self.code),
            )),
        }
    }

    fn scalar(&mut self) -> Result<Scalar> {
        match self.next()? {
            Attribute::Float(value) => Ok(Scalar::F64(*value)),
            Attribute::Int(value) => Ok(Scalar::I64(*value)),
            Attribute::Bool(value) => Ok(Scalar::Bool(*value)),
            other => Err(self.refuse(other, "a scalar")),
        }
    }

    /// The error of a code that no op has.
    fn unknown(&self) -> Error {
        Error::unsupported("decode", format!("op code {} is unknown", self.code))
    }

    fn finish(&self) -> Result<()> {
        match self.attributes.get(self.at) {
            None => Ok(()),
            Some(surplus) => Err(Error::unsupported(
                "decode",
                format!(
                    "op code {} with {} attributes, {} known, then {}",
                    self.code,
                    self.attributes.len(),
                    self.at,
                    surplus.kind()
                ),
            )),
        }
    }
}

#[cfg(test)]
mod tests;
