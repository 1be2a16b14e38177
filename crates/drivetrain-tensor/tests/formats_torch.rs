//! `.pt` files that PyTorch wrote, and such files broken.

use drivetrain_cpu as _;
use drivetrain_tensor::formats::{HostTensor, TensorFile, pt};
use drivetrain_tensor::{DType, Device, Element, ErrorKind};

#[path = "fixtures/hostile.rs"]
mod hostile;

fn read(name: &str) -> TensorFile {
    pt::read(hostile::path(name)).unwrap()
}

fn refusal(name: &str) -> drivetrain_tensor::Error {
    let error = pt::read(hostile::path(name)).unwrap_err();
    assert!(error.to_string().contains(name), "{error}");
    error
}

fn values<T: Element>(file: &TensorFile, name: &str) -> Vec<T> {
    file.get(name).unwrap().to_vec().unwrap()
}

#[test]
fn strides_are_honoured() {
    let file = read("strided.pt");
    assert_eq!(file.get("tr").unwrap().shape, [3, 2]);
    assert_eq!(values::<f32>(&file, "tr"), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    assert_eq!(file.get("exp").unwrap().shape, [2, 3]);
    assert_eq!(values::<f32>(&file, "exp"), [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]);
}

#[test]
fn storage_offsets_are_honoured() {
    let file = read("shared.pt");
    let base: Vec<f32> = (0..10u8).map(f32::from).collect();
    assert_eq!(values::<f32>(&file, "base"), base);
    assert_eq!(values::<f32>(&file, "view"), [4.0, 5.0, 6.0]);
}

#[test]
fn every_dtype_arrives_and_none_is_dropped() {
    let file = read("dtypes.pt");
    let names = [
        "n", "bf", "b", "f16", "f32", "f64", "i8", "i16", "i32", "u8", "u16", "u32", "u64", "empty",
    ];
    assert_eq!(file.names().collect::<Vec<_>>(), names);
    assert!(file.skipped.is_empty());
    let n = file.get("n").unwrap();
    assert_eq!((n.dtype, n.shape.rank()), (DType::I64, 0));
    assert_eq!(values::<i64>(&file, "n"), [5]);
    assert_eq!(file.get("bf").unwrap().dtype, DType::BF16);
    let device = Device::open("cpu").unwrap();
    let floats = |name: &str| {
        let host: &HostTensor = file.get(name).unwrap();
        host.to_tensor(&device).unwrap().to_f64_vec().unwrap()
    };
    assert_eq!(floats("bf"), [1.0, -2.5]);
    assert_eq!(floats("f16"), [0.5, -0.25]);
    assert_eq!(values::<bool>(&file, "b"), [true, false]);
    assert_eq!(values::<f32>(&file, "f32"), [1.5, -3.0]);
    assert_eq!(values::<f64>(&file, "f64"), [0.1, 1e300]);
    assert_eq!(values::<i32>(&file, "i8"), [-128, 127]);
    assert_eq!(values::<i32>(&file, "i16"), [-32768, 32767]);
    assert_eq!(values::<i32>(&file, "i32"), [i32::MIN, i32::MAX]);
    assert_eq!(values::<u8>(&file, "u8"), [0, 255]);
    assert_eq!(values::<i32>(&file, "u16"), [0, 65535]);
    assert_eq!(values::<i64>(&file, "u32"), [0, 4_294_967_295]);
    assert_eq!(values::<i64>(&file, "u64"), [0, i64::MAX]);
    assert_eq!(file.get("empty").unwrap().shape, [0, 3]);
}

#[test]
fn what_we_lack_is_an_error_that_names_entry_and_type() {
    for (name, entry, what) in [
        ("complex.pt", "`model.z`", "ComplexFloat"),
        ("float8.pt", "`model.q`", "float8_e4m3fn"),
        ("sparse.pt", "`model.s`", "sparse"),
    ] {
        let error = refusal(name);
        assert_eq!(error.kind(), ErrorKind::DType);
        let error = error.to_string();
        assert!(error.contains(entry) && error.contains(what), "{error}");
    }
}

#[test]
fn the_old_format_is_named_with_the_way_out() {
    let error = refusal("legacy.pt").to_string();
    assert!(
        error.contains("before version 1.6") && error.contains("torch.load"),
        "{error}"
    );
}

#[test]
fn a_whole_model_is_refused_with_the_way_out() {
    let error = refusal("module.pt").to_string();
    assert!(
        error.contains("torch.nn.modules.container.Sequential"),
        "{error}"
    );
    assert!(error.contains("state_dict"), "{error}");
}

#[test]
fn other_ways_of_saving_are_read() {
    for name in ["protocol4.pt", "no_checksums.pt"] {
        let file = read(name);
        assert_eq!(values::<f32>(&file, "w"), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(values::<f32>(&file, "b"), [5.0]);
    }
    let file = read("tensor.pt");
    assert_eq!(values::<f32>(&file, ""), [1.0, 2.0, 3.0]);
}

#[test]
fn a_checkpoint_becomes_dotted_names() {
    let file = read("checkpoint.pt");
    assert_eq!(file.get("model.0.weight").unwrap().shape, [3, 2]);
    assert_eq!(
        values::<f32>(&file, "model.0.weight"),
        [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    );
    assert_eq!(values::<f32>(&file, "model.0.bias"), [0.5, 1.5, 2.5]);
    assert_eq!(values::<i64>(&file, "model.1.num_batches_tracked"), [1]);
    assert_eq!(values::<f32>(&file, "optimizer.state.0.step"), [1.0]);
    assert_eq!(file.get("optimizer.state.3.exp_avg").unwrap().shape, [3]);
    assert_eq!(values::<f32>(&file, "parameter"), [7.0]);
    assert_eq!(values::<i64>(&file, "list.0"), [1]);
    assert_eq!(values::<f32>(&file, "list.1.0"), [2.0]);
    assert_eq!(file.tensors.len(), 7 + 4 * 3 + 3);
    let skipped = |name: &str| {
        let found = file.skipped.iter().find(|(known, _)| known == name);
        found.unwrap_or_else(|| panic!("{name}")).1.as_str()
    };
    assert_eq!(skipped("epoch"), "int 3");
    assert_eq!(skipped("best"), "float 0.75");
    assert_eq!(skipped("big"), "int of more than 64 bits");
    assert_eq!(skipped("note"), "str \"a note\"");
    assert_eq!(skipped("list.1.1"), "str \"text\"");
    assert_eq!(skipped("size"), "tuple of 2");
    assert_eq!(skipped("dtype"), "dtype float16");
    assert_eq!(skipped("device"), "device");
    assert_eq!(skipped("none"), "None");
    assert_eq!(skipped("optimizer.param_groups.0.lr"), "float 0.01");
    assert_eq!(skipped("optimizer.param_groups.0.params"), "list of 4");
}

#[test]
fn the_limit_can_be_lowered_and_raised() {
    let path = hostile::path("shared.pt");
    // 10 stored floats, and views of 10 and of 3.
    assert!(pt::read_limited(&path, 92).is_ok());
    let error = pt::read_limited(&path, 91).unwrap_err().to_string();
    assert!(
        error.contains("92 bytes") && error.contains("91"),
        "{error}"
    );
}

#[test]
fn every_prefix_and_thousands_of_mutations_are_survived() {
    for name in ["strided.pt", "protocol4.pt"] {
        let bytes = hostile::fixture(name);
        hostile::every_prefix_is_refused(&bytes, pt::read_bytes);
        assert!(
            hostile::mutations(&bytes, 5000, pt::read_bytes) > 1500,
            "{name}"
        );
    }
    hostile::every_prefix_is_refused(&hostile::fixture("legacy.pt"), pt::read_bytes);
}
