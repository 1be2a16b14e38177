//! What a pickle can build here: values in one list that name each other by number, and the few names it may
//! ask for.
//!
//! Nothing points to anything, so a cycle is a number and not a leak, and dropping needs no recursion.

use crate::formats::bytes::Stored;

/// A value's place in the list.
pub type Id = u32;

/// A value.
#[derive(Debug)]
pub enum Value<'a> {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'a str),
    /// Something of no interest, by the name of what it is.
    Opaque(&'static str),
    Tuple(Vec<Id>),
    List(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    Global(Global<'a>),
    /// A reference to a member of the archive, by its tuple.
    Storage(Id),
    /// A view of a storage, by the tuple of arguments it was made with.
    Tensor(Rebuild, Id),
    /// A tensor of a kind we lack.
    Refused(&'static str),
}

/// Which arguments a tensor is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rebuild {
    /// Storage, offset, sizes, strides and more; the storage knows its dtype.
    Typed,
    /// The same, with the dtype as seventh.
    Untyped,
}

/// What a name in a pickle stands for. Nothing else is known, and nothing is ever called.
#[derive(Clone, Copy, Debug)]
pub enum Global<'a> {
    /// `collections.OrderedDict`.
    OrderedDict,
    /// `collections.defaultdict`, of which only the content matters.
    DefaultDict,
    /// `collections.Counter`.
    Counter,
    /// `torch.Size`, a tuple.
    Size,
    /// A function that makes a tensor.
    Rebuild(Rebuild),
    /// A function whose first argument is the tensor.
    Parameter,
    /// A function that applies the function it is given, and then sets attributes.
    FromType,
    /// A function that makes a tensor of a kind we lack.
    Refused(&'static str),
    /// A class of storages.
    Storage(&'a str),
    /// A dtype.
    DType(&'a str),
    /// A class or function whose results are of no interest.
    Opaque(&'static str),
}

impl<'a> Global<'a> {
    /// The meaning of `module.name`, if it is on the list.
    pub fn resolve(module: &'a str, name: &'a str) -> Option<Global<'a>> {
        Some(match (module, name) {
            ("collections", "OrderedDict") => Global::OrderedDict,
            ("collections", "defaultdict") => Global::DefaultDict,
            ("collections", "Counter") => Global::Counter,
            ("torch", "Size") => Global::Size,
            ("torch", "device") => Global::Opaque("device"),
            ("torch", "Tensor") => Global::Opaque("class"),
            ("torch.nn.parameter", "Parameter" | "Buffer") => Global::Opaque("class"),
            ("torch", name)
                if name.starts_with("per_tensor_") || name.starts_with("per_channel_") =>
            {
                Global::Opaque("quantization scheme")
            }
            ("torch.serialization", "_get_layout") => Global::Opaque("layout"),
            ("torch.storage" | "torch" | "torch.cuda", name) if name.ends_with("Storage") => {
                Global::Storage(name)
            }
            ("torch", name) if DTYPES.contains(&name) => Global::DType(name),
            ("torch._utils", "_rebuild_tensor" | "_rebuild_tensor_v2") => {
                Global::Rebuild(Rebuild::Typed)
            }
            ("torch._utils", "_rebuild_tensor_v3") => Global::Rebuild(Rebuild::Untyped),
            ("torch._utils", "_rebuild_parameter" | "_rebuild_parameter_with_state") => {
                Global::Parameter
            }
            ("torch._tensor", "_rebuild_from_type_v2") => Global::FromType,
            ("torch._utils", name) => Global::Refused(refused(name)?),
            ("builtins" | "__builtin__", name) => Global::Opaque(builtin(name)?),
            ("_codecs", "encode") => Global::Opaque("bytes"),
            _ => return None,
        })
    }
}

fn refused(function: &str) -> Option<&'static str> {
    Some(match function {
        "_rebuild_sparse_tensor" | "_rebuild_sparse_csr_tensor" => "sparse tensor",
        "_rebuild_qtensor" => "quantized tensor",
        "_rebuild_nested_tensor" => "nested tensor",
        "_rebuild_meta_tensor_no_storage" => "meta tensor, which has no values",
        "_rebuild_wrapper_subclass" => "tensor subclass",
        "_rebuild_device_tensor_from_numpy" | "_rebuild_device_tensor_from_cpu_tensor" => {
            "tensor of a device without storages"
        }
        _ => return None,
    })
}

fn builtin(name: &str) -> Option<&'static str> {
    Some(match name {
        "set" => "set",
        "frozenset" => "frozenset",
        "complex" => "complex",
        "bytearray" | "bytes" => "bytes",
        "slice" => "slice",
        "range" | "xrange" => "range",
        // Types, as the argument of a defaultdict.
        "dict" | "list" | "int" | "float" | "str" | "bool" | "tuple" => "class",
        _ => return None,
    })
}

const DTYPES: [&str; 33] = [
    "float64",
    "double",
    "float32",
    "float",
    "float16",
    "half",
    "bfloat16",
    "int64",
    "long",
    "int32",
    "int",
    "int16",
    "short",
    "int8",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
    "complex32",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn_x2",
    "qint8",
    "quint8",
    "qint32",
    "quint4x2",
    "quint2x4",
];

/// The elements of a storage class or dtype of this name, if we can hold them.
pub fn stored(name: &str) -> Option<Stored> {
    Some(match name {
        "DoubleStorage" | "float64" | "double" => Stored::F64,
        "FloatStorage" | "float32" | "float" => Stored::F32,
        "HalfStorage" | "float16" | "half" => Stored::F16,
        "BFloat16Storage" | "bfloat16" => Stored::BF16,
        "LongStorage" | "int64" | "long" => Stored::I64,
        "IntStorage" | "int32" | "int" => Stored::I32,
        "ShortStorage" | "int16" | "short" => Stored::I16,
        "CharStorage" | "int8" => Stored::I8,
        "ByteStorage" | "uint8" => Stored::U8,
        "BoolStorage" | "bool" => Stored::Bool,
        "uint64" => Stored::U64,
        "uint32" => Stored::U32,
        "uint16" => Stored::U16,
        _ => return None,
    })
}

impl Value<'_> {
    /// What it is, for the list of skipped entries.
    pub fn describe(&self) -> String {
        match self {
            Value::None => "None".to_owned(),
            Value::Bool(value) => format!("bool {value}"),
            Value::Int(value) => format!("int {value}"),
            Value::Float(value) => format!("float {value:?}"),
            Value::Text(text) => match text.char_indices().nth(80) {
                Some((end, _)) => format!("str {:?}…", &text[..end]),
                None => format!("str {text:?}"),
            },
            Value::Opaque(what) | Value::Refused(what) => (*what).to_owned(),
            Value::Tuple(items) => format!("tuple of {}", items.len()),
            Value::List(items) => format!("list of {}", items.len()),
            Value::Dict(items) => format!("dict of {}", items.len()),
            Value::Global(Global::DType(name)) => format!("dtype {name}"),
            Value::Global(_) => "class or function".to_owned(),
            Value::Storage(_) => "storage".to_owned(),
            Value::Tensor(..) => "tensor".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_small() {
        assert!(size_of::<Value>() <= 32, "{}", size_of::<Value>());
    }

    #[test]
    fn only_listed_names_mean_anything() {
        for (module, name) in [
            ("os", "system"),
            ("builtins", "eval"),
            ("builtins", "getattr"),
            ("__builtin__", "exec"),
            ("torch", "load"),
            ("torch._utils", "_import_dotted_name"),
            ("torch.hub", "load"),
            ("__main__", "FloatStorage"),
        ] {
            assert!(Global::resolve(module, name).is_none(), "{module}.{name}");
        }
    }
}
