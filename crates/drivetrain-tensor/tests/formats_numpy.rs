//! npy and npz: NumPy's own files, its headers in all their forms, and files made to break a reader.

use drivetrain_cpu as _;
use drivetrain_tensor::formats::{HostTensor, npy, npz};
use drivetrain_tensor::{DType, Device, ErrorKind, Tensor};

#[path = "fixtures/hostile.rs"]
mod hostile;

// A file of this version with this header text, padded to `padding` bytes.
fn file(version: u8, header: &str, padding: usize, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x93, b'N', b'U', b'M', b'P', b'Y', version, 0];
    let spaces = " ".repeat(padding.saturating_sub(header.len()));
    let text = format!("{header}{spaces}\n");
    if version == 1 {
        bytes.extend((text.len() as u16).to_le_bytes());
    } else {
        bytes.extend((text.len() as u32).to_le_bytes());
    }
    bytes.extend(text.as_bytes());
    bytes.extend(data);
    bytes
}

fn header(descr: &str, fortran: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}")
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn the_same_array_by_path_from_a_reader_and_in_an_archive() {
    let expected = HostTensor::from_slice(&[1f32, 2.0, 3.0, 4.0], [2, 2]).unwrap();
    assert_eq!(npy::read(hostile::path("plain.npy")).unwrap(), expected);
    let bytes = hostile::fixture("plain.npy");
    assert_eq!(npy::read_bytes(&bytes).unwrap(), expected);
    let behind_junk = [&[7; 16][..], &bytes, &bytes, b"rest"].concat();
    let mut reader = &behind_junk[16..];
    assert_eq!(npy::read_from(&mut reader).unwrap(), expected);
    assert_eq!(npy::read_from(&mut reader).unwrap(), expected);
    assert_eq!(reader, b"rest");
    for name in ["stored.npz", "deflated.npz"] {
        let file = npz::read(hostile::path(name)).unwrap();
        assert_eq!(file.names().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(file.get("a").unwrap(), &expected);
        assert_eq!(file.get("b").unwrap().shape, [0, 3]);
        let c = file.get("c").unwrap().to_vec::<i64>().unwrap();
        assert_eq!(c, (0..100).collect::<Vec<i64>>());
    }
}

#[test]
fn column_major_arrays_arrive_row_major() {
    let data = floats(&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    let bytes = file(1, &header("<f4", "True", "(2, 3)"), 117, &data);
    let array = npy::read_bytes(&bytes).unwrap();
    assert_eq!(array.shape, [2, 3]);
    assert_eq!(
        array.to_vec::<f32>().unwrap(),
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    );
    let array = npy::read(hostile::path("fortran3.npy")).unwrap();
    assert_eq!(array.shape, [2, 3, 4]);
    assert_eq!(
        array.to_vec::<i32>().unwrap(),
        (0..24).collect::<Vec<i32>>()
    );
    let one = file(
        1,
        &header("<f4", "True", "(3,)"),
        117,
        &floats(&[1.0, 2.0, 3.0]),
    );
    assert_eq!(
        npy::read_bytes(&one).unwrap().to_vec::<f32>().unwrap(),
        [1.0, 2.0, 3.0]
    );
    let none = file(1, &header("<f4", "True", "(2, 0, 3)"), 117, &[]);
    assert_eq!(npy::read_bytes(&none).unwrap().shape, [2, 0, 3]);
}

#[test]
fn scalars_and_empty_arrays_are_ordinary() {
    let scalar = npy::read(hostile::path("scalar.npy")).unwrap();
    assert_eq!((scalar.dtype, scalar.shape.rank()), (DType::I64, 0));
    assert_eq!(scalar.to_vec::<i64>().unwrap(), [7]);
    let empty = file(1, &header("<f8", "False", "(0, 3)"), 117, &[]);
    assert_eq!(npy::read_bytes(&empty).unwrap().shape, [0, 3]);
    let three = file(1, &header("<f8", "False", "(3,)"), 117, &[0; 24]);
    assert_eq!(
        npy::read_bytes(&three).unwrap().to_vec::<f64>().unwrap(),
        [0.0; 3]
    );
}

#[test]
fn every_dtype_in_both_byte_orders() {
    let read = |descr: &str, data: &[u8]| {
        npy::read_bytes(&file(1, &header(descr, "False", "(1,)"), 117, data)).unwrap()
    };
    let cases: [(&str, &[u8], DType, f64); 9] = [
        ("f2", &[0x3e, 0x00], DType::F16, 1.5),
        ("f4", &[0xc0, 0x20, 0, 0], DType::F32, -2.5),
        ("f8", &[0x3f, 0xd0, 0, 0, 0, 0, 0, 0], DType::F64, 0.25),
        ("i2", &[0xff, 0xfe], DType::I32, -2.0),
        ("i4", &[0xff, 0xff, 0xff, 0xfe], DType::I32, -2.0),
        (
            "i8",
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe],
            DType::I64,
            -2.0,
        ),
        ("u2", &[0xff, 0xfe], DType::I32, 65534.0),
        ("u4", &[0xff, 0xff, 0xff, 0xfe], DType::I64, 4294967294.0),
        ("u8", &[0, 0, 0, 1, 0, 0, 0, 0], DType::I64, 4294967296.0),
    ];
    let device = Device::open("cpu").unwrap();
    let check = |host: HostTensor, dtype, value: f64| {
        assert_eq!(host.dtype, dtype);
        let found = host.to_tensor(&device).unwrap().to_f64_vec().unwrap();
        assert_eq!(found, [value]);
    };
    for (kind, big, dtype, value) in cases {
        check(read(&format!(">{kind}"), big), dtype, value);
        let little: Vec<u8> = big.iter().rev().copied().collect();
        check(read(&format!("<{kind}"), &little), dtype, value);
    }
    check(read("|i1", &[0x80]), DType::I32, -128.0);
    check(read("|u1", &[0x80]), DType::U8, 128.0);
    assert_eq!(read("|b1", &[2]).to_vec::<bool>().unwrap(), [true]);
    let big = npy::read(hostile::path("big_endian.npy")).unwrap();
    assert_eq!(big.to_vec::<f64>().unwrap(), [1.5, -2.0, 0.0, 1e-3]);
}

#[test]
fn later_versions_have_longer_lengths() {
    let text = header("<f4", "False", "(2,)");
    let data = floats(&[1.0, 2.0]);
    let two = file(2, &text, 115, &data);
    assert_eq!(two[8..12], [0x74, 0, 0, 0]);
    assert_eq!(two.len(), 136);
    for bytes in [
        two,
        file(2, &text, 70_000, &data),
        file(3, &text, 115, &data),
    ] {
        assert_eq!(
            npy::read_bytes(&bytes).unwrap().to_vec::<f32>().unwrap(),
            [1.0, 2.0]
        );
    }
    let error = npy::read_bytes(&file(9, &text, 115, &data)).unwrap_err();
    assert!(error.to_string().contains("version 9.0"), "{error}");
    let error = npy::read_bytes(&file(2, &text, 2 << 20, &data)).unwrap_err();
    assert!(error.to_string().contains("our limit"), "{error}");
}

#[test]
fn objects_strings_dates_and_structures_are_refused_by_name() {
    for (name, part) in [("object.npy", "|O"), ("structured.npy", "('x', '<f4')")] {
        let error = npy::read(hostile::path(name)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DType);
        let error = error.to_string();
        assert!(error.contains(part) && error.contains(name), "{error}");
    }
    for descr in ["<U5", "<M8[ns]", "<c8", "<f16", "|S3", "|V2", "i3", "", "<"] {
        let bytes = file(1, &header(descr, "False", "(1,)"), 117, &[0; 20]);
        let error = npy::read_bytes(&bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DType);
        assert!(error.to_string().contains(&format!("'{descr}'")), "{error}");
    }
}

#[test]
fn headers_other_programs_write_are_read() {
    let data = floats(&[1.0, 2.0]);
    for text in [
        "{'shape': (2L,), 'descr': '<f4', 'fortran_order': False}",
        "{\"descr\":\"<f4\",\"fortran_order\":False,\"shape\":(2,)}",
        "{ 'descr' : '<f4' ,'fortran_order' : False,'shape': ( 2 , 1 ) , }",
        "{'descr': '=f4', 'fortran_order': False, 'shape': (2, 1,)}",
    ] {
        assert_eq!(
            npy::read_bytes(&file(1, text, 0, &data))
                .unwrap()
                .shape
                .elements(),
            2
        );
    }
}

#[test]
fn broken_headers_are_refused() {
    for text in [
        "",
        "{",
        "{}",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': ()}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (), 'shape': ()}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (), 'x': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': ()} x",
        "{'descr': '<f4' 'fortran_order': False, 'shape': ()}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
    ] {
        assert!(
            npy::read_bytes(&file(1, text, 0, &[0; 4])).is_err(),
            "{text}"
        );
    }
}

#[test]
fn lengths_are_told_with_both_numbers() {
    let text = header("<f4", "False", "(1000000, 1000000)");
    let huge = file(1, &text, 117, &[0; 4]);
    for error in [
        npy::read_bytes(&huge).unwrap_err(),
        npy::read_from(&huge[..]).unwrap_err(),
    ] {
        let error = error.to_string();
        assert!(
            error.contains("4000000000000") && error.contains('4'),
            "{error}"
        );
    }
    let longer = [hostile::fixture("plain.npy"), vec![0; 3]].concat();
    let error = npy::read_bytes(&longer).unwrap_err().to_string();
    assert!(
        error.contains("16 bytes") && error.contains("found 19"),
        "{error}"
    );
    assert!(error.contains("read_from"), "{error}");
}

#[test]
fn every_prefix_and_thousands_of_mutations_are_survived() {
    for name in ["plain.npy", "fortran3.npy"] {
        let bytes = hostile::fixture(name);
        hostile::every_prefix_is_refused(&bytes, npy::read_bytes);
        hostile::every_prefix_is_refused(&bytes, |bytes| npy::read_from(bytes));
        assert!(hostile::mutations(&bytes, 3000, npy::read_bytes) > 1000);
    }
    for name in ["stored.npz", "deflated.npz"] {
        let bytes = hostile::fixture(name);
        hostile::every_prefix_is_refused(&bytes, npz::read_bytes);
        assert!(hostile::mutations(&bytes, 5000, npz::read_bytes) > 3000);
    }
}

#[test]
fn what_numpy_writes_is_written_byte_for_byte() {
    let plain = HostTensor::from_slice(&[1f32, 2.0, 3.0, 4.0], [2, 2]).unwrap();
    let mut bytes = Vec::new();
    npy::write_to(&mut bytes, &plain).unwrap();
    assert_eq!(bytes, hostile::fixture("plain.npy"));
}

#[test]
fn a_broadcast_view_is_written_in_full() {
    let device = Device::open("cpu").unwrap();
    let view = Tensor::from_slice(&[1i32, 2], [2], &device).unwrap();
    let view = view.expand([4, 2]).unwrap();
    let mut bytes = Vec::new();
    npy::write_to(&mut bytes, &HostTensor::from_tensor(&view).unwrap()).unwrap();
    assert_eq!(bytes.len(), 128 + 32);
    let back = npy::read_bytes(&bytes).unwrap();
    assert_eq!(back.to_vec::<i32>().unwrap(), [1, 2, 1, 2, 1, 2, 1, 2]);
}

fn sample() -> Vec<(String, HostTensor)> {
    let host = |dtype, shape: &[usize], bytes| HostTensor::new(dtype, shape, bytes).unwrap();
    vec![
        ("z".into(), host(DType::Bool, &[3], vec![1, 0, 1])),
        (
            "layer/weight é".into(),
            HostTensor::from_slice(&[0f32; 600], [20, 30]).unwrap(),
        ),
        ("empty".into(), host(DType::F64, &[0, 3], vec![])),
        ("step".into(), HostTensor::from_slice(&[7i64], ()).unwrap()),
        ("half".into(), host(DType::F16, &[1], vec![0, 0x3e])),
    ]
}

#[test]
fn archives_come_back_in_order_and_are_the_same_each_time() {
    let folder = hostile::Folder::new("npz");
    let (path, small) = (folder.join("a.npz"), folder.join("small.npz"));
    npz::write(&path, sample()).unwrap();
    npz::write_compressed(&small, sample()).unwrap();
    assert_eq!(npz::read(&path).unwrap().tensors, sample());
    assert_eq!(npz::read(&small).unwrap().tensors, sample());
    let first = std::fs::read(&path).unwrap();
    assert!(std::fs::read(&small).unwrap().len() < first.len() - 2000);
    npz::write(&path, sample()).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), first);

    let empty = folder.join("empty.npz");
    npz::write(&empty, []).unwrap();
    assert!(std::fs::read(&empty).unwrap().starts_with(b"PK\x05\x06"));
    assert!(npz::read(&empty).unwrap().tensors.is_empty());

    let one = sample()[..1].to_vec();
    let twice = [one.clone(), one].concat();
    assert!(
        npz::write(&path, twice)
            .unwrap_err()
            .to_string()
            .contains("`z`")
    );
    let bf16 = HostTensor::new(DType::BF16, [1], vec![0; 2]).unwrap();
    let error = npz::write(&path, [("b".to_owned(), bf16)])
        .unwrap_err()
        .to_string();
    assert!(error.contains("`b`") && error.contains("BF16"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), first);
}

#[test]
fn a_wrong_checksum_is_found() {
    let mut bytes = hostile::fixture("stored.npz");
    let at = bytes
        .windows(4)
        .position(|w| w == 2f32.to_le_bytes())
        .unwrap();
    bytes[at] ^= 1;
    let error = npz::read_bytes(&bytes).unwrap_err().to_string();
    assert!(error.contains("a.npy") && error.contains("CRC"), "{error}");
}

#[test]
fn more_than_the_limit_is_not_unpacked() {
    let folder = hostile::Folder::new("npz-limit");
    let path = folder.join("zeros.npz");
    let zeros = HostTensor::new(DType::U8, [1 << 20], vec![0; 1 << 20]).unwrap();
    npz::write_compressed(&path, [("zeros".to_owned(), zeros)]).unwrap();
    assert!(npz::read_limited(&path, (1 << 20) + 128).is_ok());
    let error = npz::read_limited(&path, 1 << 20).unwrap_err().to_string();
    assert!(
        error.contains("1048704") && error.contains("1048576"),
        "{error}"
    );
}

#[test]
fn a_member_whose_size_is_a_lie_is_refused() {
    // The directory's sizes stand in the zip64 field behind the member's second name.
    let folder = hostile::Folder::new("npz-lie");
    let path = folder.join("a.npz");
    let zeros = HostTensor::new(DType::U8, [4096], vec![0; 4096]).unwrap();
    npz::write_compressed(&path, [("a".to_owned(), zeros)]).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let name = bytes.windows(5).rposition(|w| w == b"a.npy").unwrap();
    let with_size = |size: u64| {
        let mut bytes = bytes.clone();
        bytes[name + 9..name + 17].copy_from_slice(&size.to_le_bytes());
        npz::read_bytes(&bytes)
    };
    assert!(with_size(4096 + 128).is_ok());
    for size in [0, 4096, 5000, 1 << 28, 1 << 40, u64::MAX] {
        let error = with_size(size).unwrap_err().to_string();
        assert!(error.contains("a.npy"), "{error}");
    }
}
