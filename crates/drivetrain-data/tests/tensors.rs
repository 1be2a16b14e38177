//! Batches as tensors: shapes, values, workers that compute, speed.

use std::time::Instant;

use drivetrain_core::{DType, Device, Result};
use drivetrain_cpu as _;
use drivetrain_data::{
    DataLoader, Dataset, Image, Mnist, Normalize, Stack, TensorDataset, ToTensor, VecDataset,
};
use drivetrain_tensor::Tensor;

fn cpu() -> Device {
    Device::open("cpu").unwrap()
}

#[test]
fn images_and_labels_become_two_tensors() {
    let image = |start: u8| Image::from_u8(1, 1, 2, vec![start, 255]).unwrap();
    let (images, labels) = Stack::stack(vec![(image(0), 3i64), (image(51), 9)]).unwrap();
    let (images, labels): (Tensor, Tensor) = (images, labels);
    assert_eq!(
        (images.dims(), images.dtype()),
        (&[2, 1, 1, 2][..], DType::F32)
    );
    assert_eq!(images.to_vec::<f32>().unwrap(), [0.0, 1.0, 0.2, 1.0]);
    assert_eq!((labels.dims(), labels.dtype()), (&[2][..], DType::I64));
    assert_eq!(labels.to_vec::<i64>().unwrap(), [3, 9]);
}

#[test]
fn images_of_different_sizes_are_an_error_that_says_resize() {
    let images = vec![
        Image::from_u8(1, 2, 2, vec![0; 4]).unwrap(),
        Image::from_u8(1, 2, 3, vec![0; 6]).unwrap(),
    ];
    let message = Image::stack(images).err().unwrap().to_string();
    for part in ["[1, 2, 2]", "[1, 2, 3]", "Resize"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn numbers_rows_strings_and_tensors_stack() {
    let (rows, values, names) = Stack::stack(vec![
        (vec![1.0f32, 2.0], 0.5f64, "a".to_string()),
        (vec![3.0, 4.0], 1.5, "b".to_string()),
    ])
    .unwrap();
    let rows: Tensor = rows;
    assert_eq!(rows.to_vec2::<f32>().unwrap(), [[1.0, 2.0], [3.0, 4.0]]);
    assert_eq!(values.to_vec::<f64>().unwrap(), [0.5, 1.5]);
    assert_eq!(names, ["a", "b"]);
    assert_eq!(
        <[u8; 2]>::stack(vec![[1, 2], [3, 4]]).unwrap().dims(),
        [2, 2]
    );
    let uneven = Vec::<i64>::stack(vec![vec![1], vec![2, 3]]).err().unwrap();
    assert!(uneven.to_string().contains("item 1"), "{uneven}");

    let tensors = [[1i64, 2], [3, 4]].map(|row| Tensor::from_data(row, &cpu()).unwrap());
    let stacked = Tensor::stack(&tensors.each_ref(), 0).unwrap();
    let collated = <Tensor as Stack>::stack(tensors.to_vec()).unwrap();
    assert_eq!(
        collated.to_vec::<i64>().unwrap(),
        stacked.to_vec::<i64>().unwrap()
    );
}

#[test]
fn tensors_are_cut_and_put_together_again() {
    let inputs = Tensor::from_data([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]], &cpu()).unwrap();
    let targets = Tensor::from_data([0i64, 1, 2], &cpu()).unwrap();
    assert!(TensorDataset::new(inputs.clone(), inputs.narrow(0, 0, 2).unwrap()).is_err());
    let set = TensorDataset::new(inputs.clone(), targets).unwrap();
    assert!(set.get(1).unwrap().0.shares_memory_with(&inputs));
    let loader = DataLoader::builder(set)
        .batch_size(2)
        .num_workers(2)
        .build()
        .unwrap();
    let batches = loader.iter().collect::<Result<Vec<_>>>().unwrap();
    assert_eq!(
        batches[0].0.to_vec2::<f32>().unwrap(),
        [[1.0, 2.0], [3.0, 4.0]]
    );
    assert_eq!(batches[1].1.to_vec::<i64>().unwrap(), [2]);
}

/// Items that use the thread pool of the tensors, in more workers than there are cores, while this thread
/// uses it too.
#[test]
fn items_that_compute_with_tensors_do_not_lock_up() {
    let square = |seed: i64| -> Result<Tensor> {
        let values: Vec<f32> = (0..128 * 128)
            .map(|i| ((i * 7 + seed) % 13) as f32 * 0.01)
            .collect();
        Tensor::from_vec(values, [128, 128], &cpu())
    };
    let heavy = move |index: i64| {
        let product = square(index)?.matmul(&square(index + 1)?)?;
        product.softmax(1)?.select(0, 0)
    };
    let batches = move |workers| -> Vec<Vec<f32>> {
        let loader = DataLoader::builder(VecDataset::new((0..40).collect()).map(heavy))
            .batch_size(4)
            .num_workers(workers)
            .build()
            .unwrap();
        let step = square(1).unwrap();
        (0..2)
            .flat_map(|_| loader.iter())
            .map(|batch| {
                let product = step.matmul(&step).unwrap();
                assert_eq!(product.dims(), [128, 128]);
                batch.unwrap().to_vec::<f32>().unwrap()
            })
            .collect()
    };
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send((batches(0), batches(8))));
    let (plain, threaded) = receiver
        .recv_timeout(std::time::Duration::from_secs(60))
        .expect("ends within a minute");
    assert_eq!(plain.len(), 20);
    assert_eq!(plain, threaded);
}

fn idx(name: &str, sizes: &[u32], data: &[u8]) -> std::path::PathBuf {
    let mut bytes = vec![0, 0, 8, sizes.len() as u8];
    sizes
        .iter()
        .for_each(|size| bytes.extend(size.to_be_bytes()));
    bytes.extend(data);
    let path = std::env::temp_dir().join(format!("drivetrain-{}-{name}", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn ten_thousand_digits_an_epoch_cost_little() {
    let pixels: Vec<u8> = (0..10_000 * 784).map(|i| (i % 256) as u8).collect();
    let images = idx("speed-images", &[10_000, 28, 28], &pixels);
    let labels = idx("speed-labels", &[10_000], &[7; 10_000]);
    let set = Mnist::from_files(&images, &labels).unwrap();
    std::fs::remove_file(images).unwrap();
    std::fs::remove_file(labels).unwrap();
    let (all, _) = set.to_tensors().unwrap();
    assert_eq!(all.dims(), [10_000, 1, 28, 28]);

    let normalize = Normalize::new(&[0.1307], &[0.3081]).unwrap();
    let set = set.transform(ToTensor).transform(normalize);
    let loader = DataLoader::builder(set)
        .batch_size(64)
        .shuffle(1)
        .build()
        .unwrap();
    // The best of three: other tests share the cores.
    let seconds = (0..3).map(|_| {
        let start = Instant::now();
        let items: usize = loader.iter().map(|batch| batch.unwrap().0.len()).sum();
        assert_eq!(items, 10_000);
        start.elapsed().as_secs_f64()
    });
    let best = seconds.fold(f64::INFINITY, f64::min);
    assert!(best < 0.2, "{best} s");
}
