//! safetensors: round trips, the reference's file, and files made to break a reader.

use drivetrain_cpu as _;
use drivetrain_tensor::formats::{HostTensor, safetensors};
use drivetrain_tensor::{DType, Device, ErrorKind, Tensor};
use std::collections::BTreeMap;

#[path = "fixtures/hostile.rs"]
mod hostile;

fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(data);
    bytes
}

fn entry(name: &str, dtype: &str, shape: &str, offsets: &str) -> String {
    format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}"#)
}

fn refusal(bytes: &[u8]) -> String {
    let error = safetensors::read_bytes(bytes).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Format | ErrorKind::DType),
        "{error:?}"
    );
    error.to_string()
}

fn sample() -> Vec<(String, HostTensor)> {
    let host = |dtype, shape: &[usize], bytes| HostTensor::new(dtype, shape, bytes).unwrap();
    vec![
        ("flag".into(), host(DType::Bool, &[3], vec![1, 0, 1])),
        (
            "weight \"α\"\n".into(),
            HostTensor::from_slice(&[1.5f32, -2.0], [2, 1]).unwrap(),
        ),
        ("empty".into(), host(DType::F64, &[0, 3], vec![])),
        ("step".into(), HostTensor::from_slice(&[7i64], ()).unwrap()),
        (
            "half".into(),
            host(DType::BF16, &[2], vec![0x80, 0x3f, 0x20, 0xc0]),
        ),
    ]
}

#[test]
fn what_is_written_comes_back_in_order() {
    let metadata = BTreeMap::from([("format".to_owned(), "pt".to_owned())]);
    let bytes = safetensors::write_bytes(sample(), &metadata).unwrap();
    let back = safetensors::read_bytes(&bytes).unwrap();
    assert_eq!(back.tensors, sample());
    assert_eq!(back.metadata, metadata);
    assert_eq!(
        bytes,
        safetensors::write_bytes(sample(), &metadata).unwrap()
    );

    let folder = hostile::Folder::new("safetensors-order");
    let path = folder.join("a.safetensors");
    safetensors::write(&path, sample(), &metadata).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    assert_eq!(safetensors::read(&path).unwrap(), back);
    // SAFETY: the file is this test's own and stays as it is.
    let mapped = unsafe { safetensors::map(&path) }.unwrap();
    assert_eq!(
        mapped.names().collect::<Vec<_>>(),
        back.names().collect::<Vec<_>>()
    );
    for (name, tensor) in &back.tensors {
        assert_eq!(&mapped.tensor(name).unwrap(), tensor);
        assert_eq!(mapped.meta(name).unwrap(), (tensor.dtype, tensor.shape));
        assert_eq!(mapped.bytes(name).unwrap().len(), tensor.bytes.len());
    }
    let error = mapped.tensor("absent").unwrap_err().to_string();
    assert!(
        error.contains("absent") && error.contains("a.safetensors"),
        "{error}"
    );
}

#[test]
fn wide_elements_come_first_so_that_all_are_aligned() {
    let bytes = safetensors::write_bytes(sample(), &BTreeMap::new()).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    assert_eq!(header % 8, 0);
    assert_eq!(bytes[8 + header..][..8], 7i64.to_le_bytes());
}

#[test]
fn the_reference_implementations_file_is_read() {
    let file = safetensors::read(hostile::path("reference.safetensors")).unwrap();
    let x = file.get("x").unwrap();
    assert_eq!(x.shape, [3, 2]);
    assert_eq!(x.to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(
        file.get("y").unwrap().to_vec::<bool>().unwrap(),
        [true, false]
    );
    assert_eq!(file.get("z").unwrap().to_vec::<i64>().unwrap(), [9]);
    assert_eq!(file.metadata["note"], "café");
}

#[test]
fn a_transposed_tensor_is_saved_as_it_reads() {
    let device = Device::open("cpu").unwrap();
    let t = Tensor::arange(0f32, 6.0, 1.0, &device).unwrap();
    let t = t.reshape([2, 3]).unwrap().transpose(0, 1).unwrap();
    let host = HostTensor::from_tensor(&t).unwrap();
    let bytes = safetensors::write_bytes([("t".to_owned(), host)], &BTreeMap::new()).unwrap();
    let data: Vec<u8> = [0f32, 3.0, 1.0, 4.0, 2.0, 5.0]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    assert_eq!(bytes[bytes.len() - 24..], data);
    let back = safetensors::read_bytes(&bytes).unwrap();
    let back = back.get("t").unwrap().to_tensor(&device).unwrap();
    assert_eq!(back.dims(), [3, 2]);
    assert_eq!(back.to_vec::<f32>().unwrap(), t.to_vec::<f32>().unwrap());
}

#[test]
fn other_types_are_widened_or_named() {
    let one = |dtype: &str, data: &[u8]| {
        let header = format!(
            "{{{}}}",
            entry("t", dtype, "[1]", &format!("[0,{}]", data.len()))
        );
        safetensors::read_bytes(&file(&header, data)).map(|file| file.tensors[0].1.clone())
    };
    assert_eq!(one("I8", &[0x80]).unwrap().to_vec::<i32>().unwrap(), [-128]);
    assert_eq!(
        one("I16", &[0, 0x80]).unwrap().to_vec::<i32>().unwrap(),
        [-32768]
    );
    assert_eq!(
        one("U16", &[0xff; 2]).unwrap().to_vec::<i32>().unwrap(),
        [65535]
    );
    assert_eq!(
        one("U32", &[0xff; 4]).unwrap().to_vec::<i64>().unwrap(),
        [4294967295]
    );
    assert_eq!(one("BOOL", &[9]).unwrap().to_vec::<bool>().unwrap(), [true]);
    let error = one("U64", &[0xff; 8]).unwrap_err().to_string();
    assert!(
        error.contains("`t`") && error.contains("18446744073709551615"),
        "{error}"
    );
    let error = one("F8_E4M3", &[0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DType);
    let error = error.to_string();
    assert!(
        error.contains("`t`") && error.contains("F8_E4M3"),
        "{error}"
    );
}

// The thirteen files of a public bug report, in its order.
#[test]
fn thirteen_hostile_headers_are_refused_by_name_or_length() {
    let a = |shape: &str, offsets: &str| format!("{{{}}}", entry("a", "F32", shape, offsets));
    let two = |second: &str| {
        format!(
            "{{{},{}}}",
            entry("a", "F32", "[2]", "[0,8]"),
            entry("b", "F32", "[2]", second)
        )
    };
    let hole = format!(
        "{{{},{}}}",
        entry("a", "F32", "[1]", "[0,4]"),
        entry("b", "F32", "[1]", "[8,12]")
    );
    let twice = format!(
        "{{{},{}}}",
        entry("a", "F32", "[1]", "[0,4]"),
        entry("a", "F32", "[1]", "[4,8]")
    );
    let mut past = 100u64.to_le_bytes().to_vec();
    past.extend_from_slice(b"{}");
    let files: [(Vec<u8>, &[&str]); 13] = [
        (vec![0; 7], &["7 bytes", "8"]),
        (vec![0xff; 8], &["18446744073709551615", "0"]),
        (past, &["100 bytes", "2 follow"]),
        (file(&a("[1]", "[4,0]"), &[0; 4]), &["`a`", "[4, 0]"]),
        (
            file(&a("[4]", "[0,16]"), &[0; 4]),
            &["`a`", "[0, 16]", "4 bytes"],
        ),
        (
            file(&a("[1000,1000]", "[0,4]"), &[0; 4]),
            &["`a`", "4000000", "[0, 4]"],
        ),
        (
            file(&a("[4294967296,4294967296]", "[0,0]"), &[]),
            &["`a`", "4294967296"],
        ),
        (file(&a("[1]", "[0]"), &[0; 4]), &["`a`", "length 1"]),
        (file(&a("[1]", "[-4,0]"), &[0; 4]), &["`a`", "-4"]),
        (file(&two("[4,12]"), &[0; 12]), &["`a`", "`b`", "overlap"]),
        (file(&hole, &[0; 12]), &["`a`", "`b`", "hole"]),
        (file(&a("[1]", "[0,4]"), &[0; 8]), &["4 bytes follow"]),
        (file(&twice, &[0; 8]), &["two tensors", "`a`"]),
    ];
    for (number, (bytes, parts)) in files.iter().enumerate() {
        let message = refusal(bytes);
        for part in *parts {
            assert!(message.contains(part), "file {}: {message}", number + 1);
        }
    }
}

#[test]
fn other_broken_headers_are_refused() {
    let valid = entry("a", "F32", "[1]", "[0,4]");
    let headers = [
        "",
        "{",
        "[]",
        " {}",
        "{}x",
        r#"{"a":1}"#,
        r#"{"a":{}}"#,
        r#"{"__metadata__":{"a":1}}"#,
        r#"{"__metadata__":{},"__metadata__":{}}"#,
        r#"{"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#,
    ];
    for header in headers {
        refusal(&file(header, &[]));
    }
    refusal(&file(&format!("{{{valid}}}"), &[0; 3]));
    refusal(&file(
        &format!("{{{}}}", entry("a", "F32", "[1]", "[4,8]")),
        &[0; 8],
    ));
    let nine = entry("a", "U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]");
    assert!(refusal(&file(&format!("{{{nine}}}"), &[0])).contains("at most 8"));
    // Brackets nested deeper than any stack holds, and a name longer than a message should be.
    refusal(&file(&format!("{{\"a\":{}", "[".repeat(1 << 20)), &[]));
    let long = entry(&"n".repeat(1 << 20), "F9", "[1]", "[0,4]");
    assert!(refusal(&file(&format!("{{{long}}}"), &[0; 4])).len() < 2000);
    assert!(
        safetensors::read_bytes(&file("{}  ", &[]))
            .unwrap()
            .tensors
            .is_empty()
    );
}

#[test]
fn a_header_over_our_limit_is_refused_with_both_numbers() {
    let folder = hostile::Folder::new("safetensors-limit");
    let path = folder.join("large.safetensors");
    let size = safetensors::HEADER_LIMIT + 8;
    std::fs::write(&path, size.to_le_bytes()).unwrap();
    // Sparse: takes no room on the disk.
    let handle = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    handle.set_len(8 + size).unwrap();
    let message = safetensors::read(&path).unwrap_err().to_string();
    for part in ["large.safetensors", "268435464", "268435456", "our limit"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_header_of_very_many_tensors_loads() {
    let count = 100_000;
    let names = (0..count).map(|i| {
        entry(
            &format!("layer.{i}.some.long.name"),
            "U8",
            "[1]",
            &format!("[{i},{}]", i + 1),
        )
    });
    let header = format!("{{{}}}", names.collect::<Vec<_>>().join(","));
    let read = safetensors::read_bytes(&file(&header, &vec![3; count])).unwrap();
    assert_eq!(read.tensors.len(), count);
    assert_eq!(read.tensors[count - 1].0, "layer.99999.some.long.name");
}

#[test]
fn every_prefix_and_thousands_of_mutations_are_survived() {
    let metadata = BTreeMap::from([("format".to_owned(), "pt".to_owned())]);
    let bytes = safetensors::write_bytes(sample(), &metadata).unwrap();
    hostile::every_prefix_is_refused(&bytes, safetensors::read_bytes);
    let refused = hostile::mutations(&bytes, 5000, safetensors::read_bytes);
    assert!(refused > 3000, "{refused}");
}

#[test]
fn names_and_fields_are_checked_before_writing() {
    let one = HostTensor::from_slice(&[1.0f32], [1]).unwrap();
    let write = |names: &[&str], tensor: &HostTensor| {
        let tensors: Vec<_> = names
            .iter()
            .map(|n| ((*n).to_owned(), tensor.clone()))
            .collect();
        safetensors::write_bytes(tensors, &BTreeMap::new())
    };
    assert!(
        write(&["a", "b", "a"], &one)
            .unwrap_err()
            .to_string()
            .contains("`a`")
    );
    assert!(write(&["__metadata__"], &one).is_err());
    let torn = HostTensor {
        bytes: vec![0; 3],
        ..one
    };
    let error = write(&["w"], &torn).unwrap_err().to_string();
    assert!(
        error.contains("`w`") && error.contains("4 bytes, found 3"),
        "{error}"
    );
}

#[test]
fn a_failed_write_keeps_the_old_file() {
    let folder = hostile::Folder::new("safetensors-old");
    let path = folder.join("a.safetensors");
    safetensors::write(&path, sample(), &BTreeMap::new()).unwrap();
    let twice = [sample(), sample()].concat();
    assert!(safetensors::write(&path, twice, &BTreeMap::new()).is_err());
    assert_eq!(safetensors::read(&path).unwrap().tensors, sample());
    let nowhere = folder.join("no/such/folder/a.safetensors");
    let error = safetensors::write(&nowhere, sample(), &BTreeMap::new()).unwrap_err();
    assert!(error.to_string().contains("no/such/folder"), "{error}");
    assert_eq!(
        safetensors::read(&nowhere).unwrap_err().kind(),
        ErrorKind::Io
    );
    assert!(safetensors::read(std::env::temp_dir()).is_err());
}
