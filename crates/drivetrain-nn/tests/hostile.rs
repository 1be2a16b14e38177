//! Odd arguments everywhere: whatever is asked, the answer is a value or an error, never a panic.

use drivetrain_core::random::Generator;
use drivetrain_cpu as _;
use drivetrain_nn::loss::{self, CrossEntropyOptions, Reduction};
use drivetrain_nn::*;
use drivetrain_tensor::{
    AvgPoolOptions, ConvOptions, ConvTransposeOptions, DType, Device, MaxPoolOptions, PadMode,
    Result, Tensor,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn cpu() -> Device {
    Device::open("cpu").unwrap()
}

/// Draws odd things.
struct Odd(Generator);

impl Odd {
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.0.below(from.len() as u64) as usize]
    }

    /// A size or count: mostly small, now and then absurd.
    fn size(&mut self) -> usize {
        self.pick(&[
            0,
            1,
            1,
            2,
            2,
            3,
            3,
            4,
            5,
            7,
            1 << 20,
            usize::MAX,
            usize::MAX / 2,
        ])
    }

    fn dim(&mut self) -> isize {
        self.pick(&[0, 1, -1, 2, -2, 3, -3, 8, isize::MAX, isize::MIN])
    }

    fn number(&mut self) -> f64 {
        self.pick(&[
            0.0,
            1.0,
            -1.0,
            0.5,
            2.0,
            1e-5,
            -1e30,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MIN_POSITIVE,
        ])
    }

    /// A tensor of a few dimensions, some empty, in any dtype and any strides.
    fn tensor(&mut self) -> Result<Tensor> {
        let rank = self.pick(&[0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 8]);
        let dims: Vec<usize> = (0..rank)
            .map(|_| self.pick(&[0, 1, 1, 2, 2, 3, 4, 6]))
            .collect();
        let dtype = self.pick(&[
            DType::F32,
            DType::F32,
            DType::F32,
            DType::F64,
            DType::F16,
            DType::BF16,
            DType::I64,
            DType::I32,
            DType::U8,
            DType::Bool,
        ]);
        let mut x = Tensor::randn(&dims, DType::F32, &cpu())?
            .mul(3.0)?
            .to_dtype(dtype)?;
        match self.pick(&[0, 0, 1, 2, 3]) {
            1 if rank >= 2 => x = x.transpose(0, -1)?,
            2 if rank >= 1 => x = x.slice(0, None, None, self.pick(&[-1, 2]))?,
            3 if (1..8).contains(&rank) => x = x.unsqueeze(0)?.expand([&[2], x.dims()].concat())?,
            _ => {}
        }
        if dtype.is_float() && self.pick(&[true, false]) {
            x.requires_grad_()
        } else {
            Ok(x)
        }
    }
}

type Call = fn(&mut Odd, &Tensor, &Tensor, &Tensor) -> Result<Tensor>;

fn conv(odd: &mut Odd) -> ConvOptions {
    ConvOptions::default()
        .stride(odd.size())
        .padding(odd.size())
        .dilation(odd.size())
        .groups(odd.size())
}

fn max_pool(odd: &mut Odd) -> MaxPoolOptions {
    MaxPoolOptions::new(odd.size())
        .stride(odd.size())
        .padding(odd.size())
        .dilation(odd.size())
        .ceil_mode(odd.pick(&[true, false]))
}

fn avg_pool(odd: &mut Odd) -> AvgPoolOptions {
    AvgPoolOptions::new(odd.size())
        .stride(odd.size())
        .padding(odd.size())
        .ceil_mode(odd.pick(&[true, false]))
}

fn reduction(odd: &mut Odd) -> Reduction {
    odd.pick(&[
        Reduction::None,
        Reduction::Mean,
        Reduction::Sum,
        Reduction::BatchMean,
    ])
}

fn transposed(odd: &mut Odd) -> ConvTransposeOptions {
    ConvTransposeOptions::default()
        .stride(odd.size())
        .padding(odd.size())
        .output_padding(odd.size())
        .dilation(odd.size())
        .groups(odd.size())
}

const CALLS: &[(&str, Call)] = &[
    ("add", |_, x, y, _| x.add(y)),
    ("div", |_, x, y, _| x.div(y)),
    ("pow", |_, x, y, _| x.pow(y)),
    ("remainder", |_, x, y, _| x.remainder(y)),
    ("floor_divide", |_, x, y, _| x.floor_divide(y)),
    ("scalar", |o, x, _, _| {
        x.mul(o.number())?.remainder(o.number())?.pow(o.number())
    }),
    ("integer scalar", |o, x, _, _| {
        x.floor_divide(o.pick(&[0i64, -1, i64::MIN, i64::MAX]))?
            .remainder(o.pick(&[0i64, -1, i64::MIN]))
    }),
    ("eq", |_, x, y, _| x.eq(y)),
    ("where", |_, x, y, z| x.where_(z, y)),
    ("masked_fill", |o, x, _, z| x.masked_fill(z, o.number())),
    ("clamp", |o, x, _, _| x.clamp(o.number(), o.number())),
    ("unary", |_, x, _, _| x.abs()?.sqrt()?.log()?.neg()?.round()),
    ("activations", |o, x, _, _| {
        x.gelu()?
            .silu()?
            .softplus(o.number(), o.number())?
            .elu(o.number())?
            .hardtanh(o.number(), o.number())
    }),
    ("sum", |o, x, _, _| x.sum(o.dim())),
    ("mean", |o, x, _, _| x.mean([o.dim(), o.dim()])),
    ("prod", |o, x, _, _| x.prod(o.dim())),
    ("amax", |o, x, _, _| x.amax_keepdim(o.dim())),
    ("var", |o, x, _, _| x.var(o.dim(), o.number(), true)),
    ("std", |o, x, _, _| x.std((), o.number(), false)),
    ("norm", |o, x, _, _| x.norm(o.number(), o.dim(), true)),
    ("logsumexp", |o, x, _, _| x.logsumexp(o.dim())),
    ("argmax", |o, x, _, _| x.argmax(o.dim(), true)),
    ("max", |o, x, _, _| Ok(x.max(o.dim(), false)?.0)),
    ("sort", |o, x, _, _| Ok(x.sort(o.dim(), true)?.0)),
    ("topk", |o, x, _, _| Ok(x.topk(o.size(), o.dim(), true)?.0)),
    ("cumsum", |o, x, _, _| x.cumsum(o.dim())?.cumprod(o.dim())),
    ("softmax", |o, x, _, _| x.softmax(o.dim())),
    ("log_softmax", |o, x, _, _| x.log_softmax(o.dim())),
    ("reshape", |o, x, _, _| x.reshape([o.dim(), o.dim()])),
    ("view", |o, x, _, _| x.view([o.dim(), o.dim(), o.dim()])),
    ("flatten", |o, x, _, _| x.flatten(o.dim(), o.dim())),
    ("permute", |o, x, _, _| x.permute(&[o.dim(), o.dim()])),
    ("transpose", |o, x, _, _| x.transpose(o.dim(), o.dim())),
    ("expand", |o, x, _, _| {
        x.expand([o.size(), o.size()])?.sum(())
    }),
    ("squeeze", |o, x, _, _| {
        x.squeeze(o.dim())?.unsqueeze(o.dim())
    }),
    ("narrow", |o, x, _, _| x.narrow(o.dim(), o.size(), o.size())),
    ("slice", |o, x, _, _| {
        x.slice(o.dim(), Some(o.dim()), Some(o.dim()), o.dim())
    }),
    ("select", |o, x, _, _| x.select(o.dim(), o.dim())),
    ("flip", |o, x, _, _| x.flip(&[o.dim(), o.dim()])),
    ("split", |o, x, _, _| {
        Ok(x.split(o.size(), o.dim())?.remove(0))
    }),
    ("chunk", |o, x, _, _| {
        Ok(x.chunk(o.size(), o.dim())?.remove(0))
    }),
    ("unfold", |o, x, _, _| x.unfold(o.dim(), o.size(), o.size())),
    ("diagonal", |o, x, _, _| x.diagonal(o.dim(), o.dim())),
    ("cat", |o, x, y, z| Tensor::cat(&[x, y, z], o.dim())),
    ("stack", |o, x, y, _| Tensor::stack(&[x, x, y], o.dim())),
    ("repeat", |o, x, _, _| {
        x.repeat(&[o.size(), o.size(), o.size()])
    }),
    ("roll", |o, x, _, _| x.roll(o.dim(), o.dim())),
    ("pad", |o, x, _, _| {
        x.pad(
            &[o.dim(), o.dim(), o.dim(), o.dim()],
            o.pick(&[PadMode::Reflect, PadMode::Replicate, PadMode::Circular]),
        )
    }),
    ("pad_constant", |o, x, _, _| {
        x.pad_constant(&[(o.size(), o.size()), (o.size(), o.size())], o.number())
    }),
    ("tril", |o, x, _, _| x.tril(o.dim())?.triu(o.dim())),
    ("matmul", |_, x, y, _| x.matmul(y)),
    ("linear", |_, x, y, z| x.linear(y, Some(z))),
    ("gather", |o, x, y, _| x.gather(o.dim(), y)),
    ("scatter_add", |o, x, y, z| x.scatter_add(o.dim(), y, z)),
    ("index_select", |o, x, y, _| x.index_select(o.dim(), y)),
    ("index_add", |o, x, y, z| x.index_add(o.dim(), y, z)),
    ("embedding", |_, x, y, _| x.embedding(y)),
    ("einsum", |o, x, y, _| {
        Tensor::einsum(
            o.pick(&[
                "ij,jk->ik",
                "ii",
                "...i,...j->...ij",
                "ab",
                "->",
                "i->ii",
                ",",
                "aé",
            ]),
            &[x, y],
        )
    }),
    ("conv1d", |o, x, y, z| {
        let c = conv(o);
        x.conv1d(y, Some(z), &c)
    }),
    ("conv2d", |o, x, y, _| {
        let c = conv(o);
        x.conv2d(y, None, &c)
    }),
    ("conv2d plain", |_, x, y, _| {
        x.conv2d(y, None, &ConvOptions::default().padding(1))
    }),
    ("conv_transpose2d", |o, x, y, _| {
        let c = transposed(o);
        x.conv_transpose2d(y, None, &c)
    }),
    ("max_pool2d", |o, x, _, _| {
        let p = max_pool(o);
        x.max_pool2d(&p)
    }),
    ("max_pool1d", |o, x, _, _| {
        let p = max_pool(o);
        x.max_pool1d(&p)
    }),
    ("avg_pool2d", |o, x, _, _| {
        let p = avg_pool(o);
        x.avg_pool2d(&p)
    }),
    ("adaptive_avg_pool2d", |o, x, _, _| {
        x.adaptive_avg_pool2d([o.size(), o.size()])
    }),
    ("adaptive_max_pool2d", |o, x, _, _| {
        x.adaptive_max_pool2d([o.size(), o.size()])
    }),
    ("upsample_nearest", |o, x, _, _| {
        x.upsample_nearest(&[o.size(), o.size()])
    }),
    ("upsample_bilinear2d", |o, x, _, _| {
        x.upsample_bilinear2d([o.size(), o.size()], o.pick(&[true, false]))
    }),
    ("upsample by", |o, x, _, _| {
        x.upsample_linear_by(&[o.number(), o.number()], false)
    }),
    ("layer_norm", |o, x, y, _| {
        x.layer_norm([o.size()], Some(y), None, o.number())
    }),
    ("rms_norm", |o, x, _, _| {
        x.rms_norm([o.size()], None, o.number())
    }),
    ("group_norm", |o, x, y, _| {
        x.group_norm(o.size(), Some(y), None, o.number())
    }),
    ("batch_norm", |o, x, y, z| {
        x.batch_norm(y, z, None, None, o.number())
    }),
    ("batch_norm training", |o, x, y, _| {
        Ok(x.batch_norm_training(Some(y), None, o.number())?.output)
    }),
    ("attention", |o, x, y, z| {
        x.scaled_dot_product_attention(y, z, None, o.pick(&[true, false]), None)
    }),
    ("one_hot", |o, x, _, _| x.one_hot(o.size())),
    ("dropout", |o, x, _, _| x.dropout(o.number())),
    ("cosine_similarity", |o, x, y, _| {
        x.cosine_similarity(y, o.dim(), o.number())
    }),
    ("arange", |o, _, _, _| {
        Tensor::arange(o.number(), o.number(), o.number(), &cpu())
    }),
    ("arange integers", |o, _, _, _| {
        Tensor::arange(
            o.pick(&[0, i64::MIN]),
            o.pick(&[3, i64::MAX]),
            o.pick(&[1, i64::MAX, 0]),
            &cpu(),
        )
    }),
    ("linspace", |o, _, _, _| {
        Tensor::linspace(o.number(), o.number(), o.size(), DType::F32, &cpu())
    }),
    ("randint", |o, _, _, _| {
        Tensor::randint(o.dim() as i64, o.dim() as i64, [o.pick(&[0, 3])], &cpu())
    }),
    ("zeros", |o, _, _, _| {
        Tensor::zeros([o.size(), o.size()], DType::U8, &cpu())
    }),
    ("mse_loss", |o, x, y, _| {
        let r = reduction(o);
        loss::mse_loss(x, y, r)
    }),
    ("huber_loss", |o, x, y, _| {
        let r = reduction(o);
        loss::huber_loss(x, y, o.number(), r)
    }),
    ("cross_entropy", |o, x, y, z| {
        let weight = o.pick(&[true, false]).then(|| z.clone());
        let options = CrossEntropyOptions {
            reduction: reduction(o),
            weight,
            ignore_index: o.dim() as i64,
            label_smoothing: o.number(),
        };
        loss::cross_entropy(x, y, &options)
    }),
    ("nll_loss", |o, x, y, _| {
        loss::nll_loss(
            x,
            y,
            &CrossEntropyOptions {
                reduction: reduction(o),
                ..Default::default()
            },
        )
    }),
    ("bce_with_logits", |o, x, y, z| {
        let r = reduction(o);
        loss::bce_with_logits(x, y, Some(z), None, r)
    }),
    ("kl_div", |o, x, y, _| {
        let r = reduction(o);
        loss::kl_div(x, y, true, r)
    }),
    ("print", |_, x, _, _| {
        assert!(!format!("{x} {x:?}").is_empty());
        Ok(x.clone())
    }),
    ("layers", |o, x, _, _| {
        let n = o.pick(&[0, 1, 2, 4]);
        let layers: [Result<Box<dyn Layer>>; 6] = [
            Linear::new(n, 3, &cpu()).map(|l| Box::new(l) as Box<dyn Layer>),
            BatchNorm1d::new(n, &cpu()).map(|l| Box::new(l) as Box<dyn Layer>),
            Embedding::new(n, 3, &cpu()).map(|l| Box::new(l) as Box<dyn Layer>),
            Lstm::new(n, 3, &cpu()).map(|l| Box::new(l) as Box<dyn Layer>),
            MultiheadAttention::new(n, o.pick(&[0, 1, 2]), &cpu())
                .map(|l| Box::new(l) as Box<dyn Layer>),
            Conv2d::new(n, 2, o.pick(&[0, 1, 3]), &cpu()).map(|l| Box::new(l) as Box<dyn Layer>),
        ];
        let mut last = Ok(x.clone());
        for layer in layers {
            last = layer.and_then(|layer| layer.forward(x));
        }
        last
    }),
];

#[test]
fn odd_arguments_never_panic() {
    // Absurd sizes are refused by this limit instead of by the machine.
    cpu().set_memory_limit(Some(1 << 28));
    let mut odd = Odd(Generator::new(20, 1));
    let mut faults = Vec::new();
    let (mut values, mut errors) = (0, 0);
    for round in 0..120 {
        for (name, call) in CALLS {
            let inputs = [odd.tensor(), odd.tensor(), odd.tensor()].map(Result::unwrap);
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                let y = call(&mut odd, &inputs[0], &inputs[1], &inputs[2])?;
                let seen = y.to_bytes()?.len();
                if y.requires_grad() && y.elements() > 0 {
                    y.sum(())?.backward()?;
                }
                Ok::<usize, drivetrain_tensor::Error>(seen)
            }));
            match outcome {
                Ok(Ok(_)) => values += 1,
                Ok(Err(error)) => {
                    assert!(error.to_string().len() > 10, "{name}: {error}");
                    errors += 1;
                }
                Err(_) => faults.push(format!(
                    "{name} in round {round}: {:?}",
                    inputs.each_ref().map(|t| (t.dtype(), *t.shape()))
                )),
            }
        }
    }
    assert!(faults.is_empty(), "{} panics: {faults:#?}", faults.len());
    assert!(
        values > 500 && errors > 500,
        "{values} values, {errors} errors: both must come up"
    );
}
