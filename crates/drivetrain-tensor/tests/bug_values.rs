//! Kinds of wrong values, panics and unclear errors that other frameworks had. Numbers by hand or from PyTorch.

use drivetrain_cpu as _;
use drivetrain_tensor::{ConvOptions, DType, Device, Result, Tensor};

fn cpu() -> Device {
    Device::open("cpu").unwrap()
}

fn counted(shape: &[usize]) -> Result<Tensor> {
    let n = shape.iter().product::<usize>() as f32;
    Tensor::arange(0.0f32, n, 1.0, &cpu())?.reshape(shape)
}

fn values(x: &Tensor) -> Vec<f32> {
    x.to_vec::<f32>().unwrap()
}

#[test]
fn matmul_of_views() -> Result<()> {
    // A row picked out of three dimensions: its stride is not its width.
    let row = counted(&[2, 3, 4])?.index((.., 2, ..))?;
    assert_eq!(row.strides(), [12, 1]);
    let right = counted(&[3, 4])?.t()?;
    let want = [62.0, 214.0, 366.0, 134.0, 478.0, 822.0];
    assert_eq!(values(&row.matmul(&right)?), want);
    assert_eq!(
        values(&row.contiguous()?.matmul(&right.contiguous()?)?),
        want
    );
    // Strides of 0.
    let a = Tensor::from_data([[1.0f32, 2.0, 3.0]], &cpu())?.expand([2, 3])?;
    let b = Tensor::from_data([[1.0f32, 0.0], [0.0, 1.0], [1.0, 1.0]], &cpu())?;
    assert_eq!(values(&a.matmul(&b)?), [4.0, 5.0, 4.0, 5.0]);
    let zeros = |shape: [usize; 2]| Tensor::zeros([1, 1], DType::F32, &cpu())?.expand(shape);
    assert_eq!(values(&zeros([1, 2])?.matmul(&zeros([2, 2])?)?), [0.0, 0.0]);
    // Five dimensions.
    let left = counted(&[2, 3])?.repeat(&[1, 2, 1, 1, 1])?;
    let product = left.matmul(&counted(&[1, 2, 1, 3, 2])?)?;
    assert_eq!(product.dims(), [1, 2, 1, 2, 2]);
    assert_eq!(
        values(&product),
        [10.0, 13.0, 28.0, 40.0, 28.0, 31.0, 100.0, 112.0]
    );
    Ok(())
}

#[test]
fn casts_of_broadcast_views() -> Result<()> {
    let b = Tensor::from_data([[1.5f32], [2.5], [-3.7]], &cpu())?;
    for wide in [b.expand([3, 3])?, b.expand([1, 1, 3, 3])?] {
        let whole = wide.to_dtype(DType::I64)?;
        assert_eq!(whole.to_vec::<i64>()?, [1, 1, 1, 2, 2, 2, -3, -3, -3]);
        let turned = wide.transpose(-1, -2)?.to_dtype(DType::I64)?;
        assert_eq!(turned.to_vec::<i64>()?, [1, 2, -3, 1, 2, -3, 1, 2, -3]);
    }
    Ok(())
}

#[test]
fn means_of_halves_and_sums_of_many() -> Result<()> {
    let d = cpu();
    for half in [DType::F16, DType::BF16] {
        assert_eq!(
            Tensor::ones([100_000], half, &d)?.mean(())?.item::<f32>()?,
            1.0
        );
        let rows = Tensor::ones([2, 70_000], half, &d)?.mean(1)?;
        assert_eq!(rows.to_f64_vec()?, [1.0, 1.0]);
    }
    let large = Tensor::full([3], 40_000.0, DType::F16, &d)?.mean(())?;
    assert_eq!(large.item::<f32>()?, 40_000.0);
    // A running F32 sum would stop at 16,777,216.
    assert_eq!(
        Tensor::ones([33_554_432], DType::F32, &d)?
            .sum(())?
            .item::<f32>()?,
        33_554_432.0
    );
    let mean = Tensor::full([20_000_000], 0.1, DType::F32, &d)?
        .mean(())?
        .item::<f32>()?;
    assert!((mean - 0.1).abs() < 1e-6, "{mean}");
    Ok(())
}

#[test]
fn sums_of_small_integers_do_not_wrap() -> Result<()> {
    let d = cpu();
    let bytes = Tensor::full([1000], 255, DType::U8, &d)?;
    assert_eq!(bytes.sum(())?.item::<i64>()?, 255_000);
    assert_eq!(bytes.mean(())?.item::<f32>()?, 255.0);
    assert_eq!(
        Tensor::full([300], true, DType::Bool, &d)?
            .sum(())?
            .item::<i64>()?,
        300
    );
    Ok(())
}

#[test]
fn extremes_of_equals_and_of_nan() -> Result<()> {
    let d = cpu();
    for _ in 0..100 {
        let x = Tensor::from_data([1.0f32, 3.0, 3.0, 3.0], &d)?;
        assert_eq!(x.argmax(0, false)?.item::<i64>()?, 1);
        assert_eq!(
            Tensor::ones([100_000], DType::F32, &d)?
                .argmax(0, false)?
                .item::<i64>()?,
            0
        );
    }
    let ties = Tensor::from_data(
        [
            [0.0f32, 2.0, 2.0, 1.0],
            [5.0, 5.0, 5.0, 5.0],
            [1.0, 0.0, 1.0, 0.0],
        ],
        &d,
    )?;
    assert_eq!(ties.argmax(1, false)?.to_vec::<i64>()?, [1, 0, 0]);
    assert_eq!(ties.argmin(1, false)?.to_vec::<i64>()?, [0, 0, 1]);
    let x = Tensor::from_data([1.0f32, f32::NAN, 3.0], &d)?;
    assert_eq!(x.argmax(0, false)?.item::<i64>()?, 1);
    assert_eq!(x.argmin(0, false)?.item::<i64>()?, 1);
    // Along a dimension of size 1.
    let flat = Tensor::zeros([40, 900, 1], DType::F32, &d)?.argmax(2, false)?;
    assert_eq!(flat.dims(), [40, 900]);
    assert!(flat.to_vec::<i64>()?.iter().all(|&i| i == 0));
    Ok(())
}

#[test]
fn long_rows_are_sorted() -> Result<()> {
    let d = cpu();
    let n = 32_003;
    let scattered: Vec<i64> = (0..n).map(|i| (i * 7919) % n).collect();
    let (sorted, index) = Tensor::from_slice(&scattered, [n as usize], &d)?.sort(0, false)?;
    assert_eq!(sorted.to_vec::<i64>()?, (0..n).collect::<Vec<_>>());
    let index = index.to_vec::<i64>()?;
    assert_eq!(
        (&index[..4], index[index.len() - 1]),
        (&[0, 14876, 29752, 12625][..], 17127)
    );
    for n in [1024usize, 1025, 2048, 8193, 100_000] {
        let falling: Vec<f32> = (0..n).map(|i| (n - i) as f32).collect();
        let order = Tensor::from_slice(&falling, [n], &d)?
            .argsort(0, false)?
            .to_vec::<i64>()?;
        assert!(
            order
                .iter()
                .enumerate()
                .all(|(i, &at)| at as usize == n - 1 - i)
        );
    }
    let x = Tensor::from_data([2.0f32, f32::NAN, f32::NEG_INFINITY, 1.0], &d)?;
    let text = |descending| {
        Ok::<_, drivetrain_tensor::Error>(format!("{:?}", values(&x.sort(0, descending)?.0)))
    };
    assert_eq!(text(false)?, "[-inf, 1.0, 2.0, NaN]");
    assert_eq!(text(true)?, "[NaN, 2.0, 1.0, -inf]");
    Ok(())
}

#[test]
fn more_rows_than_65_535() -> Result<()> {
    const ROWS: usize = 70_000;
    let start = Tensor::from_data([3.0f32, 1.0, 2.0, 0.0], &cpu())?;
    let x = Tensor::arange(0.0f32, ROWS as f32, 1.0, &cpu())?
        .unsqueeze(1)?
        .add(&start)?;
    let (sorted, sums) = (x.sort(-1, false)?.0, values(&x.sum(-1)?));
    let (tops, sorted) = (values(&x.max(-1, false)?.0), values(&sorted));
    let softmax = values(&x.softmax(-1)?);
    let norm = values(&x.layer_norm([4], None, None, 1e-5)?);
    for r in [0, 65_534, 65_535, 65_536, 69_999] {
        let first = r as f32;
        assert_eq!(
            sorted[4 * r..][..4],
            [first, first + 1.0, first + 2.0, first + 3.0]
        );
        assert_eq!((sums[r], tops[r]), (4.0 * first + 6.0, first + 3.0));
        let near = |a: f32, b: f32| (a - b).abs() < 2e-2;
        assert!(near(softmax[4 * r], 0.6439) && near(softmax[4 * r + 3], 0.0321));
        assert!(near(norm[4 * r], 1.3416) && near(norm[4 * r + 3], -1.3416));
    }
    Ok(())
}

#[test]
fn sizes_that_overflow_are_errors() {
    let error = Tensor::zeros([1 << 33, 1 << 33], DType::F32, &cpu())
        .map(|t| t.elements())
        .unwrap_err();
    assert!(error.to_string().contains("size overflow"), "{error}");
    let x = Tensor::ones([1, 1], DType::F32, &cpu()).unwrap();
    let error = x
        .expand([1 << 33, 1 << 33])
        .map(|t| t.elements())
        .unwrap_err();
    assert!(error.to_string().contains("size overflow"), "{error}");
    assert!(x.repeat(&[1 << 33, 1 << 33]).is_err());
    assert!(x.reshape([1 << 33, 1usize << 33]).is_err());
}

/// Each mistake is an error, not a panic, that says what and with which numbers.
#[test]
fn mistakes_are_errors_that_say_what() -> Result<()> {
    let d = cpu();
    let ones = |shape: &[usize]| Tensor::ones(shape, DType::F32, &cpu()).unwrap();
    let matrix = ones(&[2, 3]);
    let whole = Tensor::ones([2, 3], DType::I64, &d)?;
    let image = ones(&[1, 1, 8, 8]);
    let graph = matrix.requires_grad_()?.exp()?;
    let used = graph.sum(())?;
    used.backward()?;
    type Mistake<'a> = Box<dyn Fn() -> Result<()> + 'a>;
    let nothing = |t: Result<Tensor>| t.map(|_| ());
    let cases: Vec<(Mistake, &[&str])> = vec![
        (
            Box::new(|| nothing(matrix.reshape([4usize, 2]))),
            &["reshape", "[2, 3]", "[4, 2]", "8 elements"],
        ),
        (
            Box::new(|| nothing(matrix.matmul(&matrix))),
            &["matmul", "[2, 3]"],
        ),
        (
            Box::new(|| nothing(Tensor::cat(&[&matrix, &whole], 0))),
            &["cat", "F32", "I64"],
        ),
        (
            Box::new(|| nothing(matrix.index((.., 5)))),
            &["index", "5", "size 3"],
        ),
        (
            Box::new(|| nothing(matrix.select(1, 5))),
            &["select", "5", "size 3"],
        ),
        (
            Box::new(|| nothing(image.conv2d(&ones(&[4, 3, 3, 3]), None, &ConvOptions::default()))),
            &["conv2d", "[1, 1, 8, 8]", "3"],
        ),
        (Box::new(|| graph.backward()), &["backward", "[2, 3]"]),
        (Box::new(|| used.backward()), &["backward", "freed"]),
        (
            Box::new(|| ones(&[2]).item::<f32>().map(|_| ())),
            &["item", "[2]", "2 elements"],
        ),
        (Box::new(|| nothing(matrix.sum(7))), &["sum", "7", "rank 2"]),
        (
            Box::new(|| nothing(matrix.unsqueeze(7))),
            &["unsqueeze", "7"],
        ),
        (
            Box::new(|| nothing(matrix.permute(&[0, 0]))),
            &["permute", "[0, 0]"],
        ),
        (
            Box::new(|| nothing(matrix.add(&ones(&[4])))),
            &["add", "[2, 3]", "[4]"],
        ),
        (
            Box::new(|| nothing(matrix.expand([2, 4]))),
            &["expand", "[2, 3]", "[2, 4]"],
        ),
        (
            Box::new(|| nothing(matrix.gather(0, &Tensor::full([2, 3], 9, DType::I64, &d)?))),
            &["gather", "9", "2"],
        ),
        (
            Box::new(|| nothing(matrix.index_select(1, &Tensor::from_data([0i64, 3], &d)?))),
            &["index_select", "3"],
        ),
        (
            Box::new(|| nothing(matrix.narrow(1, 2, 2))),
            &["narrow", "2 elements from 2", "size 3"],
        ),
        (
            Box::new(|| matrix.to_vec::<f64>().map(|_| ())),
            &["to_vec", "F64", "F32"],
        ),
        (
            Box::new(|| nothing(Tensor::from_slice(&[1.0f32; 5], [2, 3], &d))),
            &["5", "[2, 3]", "6"],
        ),
        (
            Box::new(|| nothing(Tensor::from_data(vec![vec![1.0f32, 2.0], vec![3.0]], &d))),
            &["[2]", "[1]"],
        ),
    ];
    for (i, (mistake, words)) in cases.iter().enumerate() {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(mistake));
        let error = result.unwrap_or_else(|_| panic!("case {i}, {words:?}, panics"));
        let text = error
            .map_err(|e| e.to_string())
            .expect_err(&format!("case {i}, {words:?}"));
        for word in *words {
            assert!(text.contains(word), "case {i}: {word:?} is not in {text:?}");
        }
    }
    Ok(())
}

/// w=[1,-2], loss (w₀-3)² + 10(w₁-1)², five steps of AdamW written with tensor ops.
fn train() -> Result<Vec<f32>> {
    let (d, rate, b1, b2) = (cpu(), 0.1, 0.9f64, 0.999f64);
    let target = Tensor::from_data([3.0f32, 1.0], &d)?;
    let scale = Tensor::from_data([1.0f32, 10.0], &d)?;
    let mut w = Tensor::from_data([1.0f32, -2.0], &d)?;
    let (mut m, mut v) = (w.zeros_like()?, w.zeros_like()?);
    for step in 1..=5 {
        let leaf = w.requires_grad_()?;
        leaf.sub(&target)?
            .square()?
            .mul(&scale)?
            .sum(())?
            .backward()?;
        let g = leaf.grad().expect("a gradient");
        m = (m.mul(b1)? + g.mul(1.0 - b1)?)?;
        v = (v.mul(b2)? + g.square()?.mul(1.0 - b2)?)?;
        let top = m.div(1.0 - b1.powi(step))?;
        let bottom = v.div(1.0 - b2.powi(step))?.sqrt()?.add(1e-8)?;
        w = w
            .mul(1.0 - rate * 0.01)?
            .sub(&top.div(&bottom)?.mul(rate)?)?;
    }
    Ok(values(&w))
}

#[test]
fn four_threads_train_at_once() -> Result<()> {
    let alone = train()?;
    assert!(
        (alone[0] - 1.4911).abs() < 1e-5 && (alone[1] + 1.492838).abs() < 1e-5,
        "{alone:?}"
    );
    std::thread::scope(|scope| {
        let quiet = scope.spawn(|| {
            drivetrain_tensor::no_grad(|| {
                (0..200).all(|_| !drivetrain_tensor::is_grad_enabled() && train().is_err())
            })
        });
        let busy: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| (0..50).map(|_| train()).collect::<Result<Vec<_>>>()))
            .collect();
        for thread in busy {
            let rounds = thread.join().unwrap().unwrap();
            assert!(rounds.iter().all(|w| *w == alone));
        }
        // The leaf of a no-grad thread requires a gradient, but what it computes does not: backward refuses.
        assert!(quiet.join().unwrap());
    });
    Ok(())
}

#[test]
fn eight_threads_share_a_model() -> Result<()> {
    let d = cpu();
    let weight = Tensor::randn([16, 8], DType::F32, &d)?.requires_grad_()?;
    let bias = Tensor::randn([16], DType::F32, &d)?.requires_grad_()?;
    let x = Tensor::randn([4, 8], DType::F32, &d)?;
    let forward = || -> Result<Vec<f32>> {
        Ok(values(
            &x.linear(&weight, Some(&bias))?.gelu()?.softmax(-1)?,
        ))
    };
    let alone = forward()?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| (0..1000).all(|_| forward().unwrap() == alone)))
            .collect();
        assert!(threads.into_iter().all(|t| t.join().unwrap()));
    });
    Ok(())
}
