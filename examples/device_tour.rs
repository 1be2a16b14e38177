//! What lives where: the questions a newcomer asks about devices, each answered by code that runs.
//!
//! `cargo run --release --example device_tour -- --device cuda`
//!
//! On a machine with one device the second is a twin of the first: it has memory of its own as far as a program can
//! tell. Every line with `->` is computed, not written down.

use drivetrain::prelude::*;
use drivetrain_examples::{Args, Outcome, Program, twin::twin};
use std::io::Write;
use std::process::ExitCode;

/// What every stop of the tour gets: here, elsewhere, and where to write.
struct Tour<'a> {
    here: Device,
    there: Device,
    out: &'a mut dyn Write,
}

impl Tour<'_> {
    fn ask(&mut self, question: &str) -> std::io::Result<()> {
        writeln!(self.out, "\n{question}")
    }

    fn answer(&mut self, code: &str, value: impl std::fmt::Display) -> std::io::Result<()> {
        writeln!(self.out, "  {code} -> {value}")
    }
}

/// Asks and answers, one stop after the other.
pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let here = args.begin(out)?;
    let there = Device::all()
        .into_iter()
        .find(|device| *device != here)
        .unwrap_or_else(|| twin(&here));
    writeln!(out, "The tour's other device: {there}")?;
    let mut tour = Tour { here, there, out };
    let stops = [
        lengths, lists, parameters, indexing, placing, inputs, fetching, printing, twice, training,
        functions, mixing,
    ];
    // --quick changes nothing: the tour takes no time.
    stops.iter().try_for_each(|stop| stop(&mut tour))
}

fn lengths(tour: &mut Tour) -> Outcome {
    let x = Tensor::zeros([5, 10], DType::F32, &tour.here)?;
    tour.ask("Is `len` computed on the device?")?;
    let before = tour.here.executed_ops();
    let (len, size, shape) = (x.len(), x.size(1)?, *x.shape());
    let asked = tour.here.executed_ops() - before;
    tour.answer("x.len()", len)?;
    tour.answer("x.size(1)?", size)?;
    tour.answer("x.shape()", shape)?;
    tour.answer("operations that the device ran for these", asked)?;
    Ok(())
}

fn lists(tour: &mut Tour) -> Outcome {
    tour.ask("How does a list become a tensor on a device? May tensors go into a list?")?;
    let list = vec![1.0f32, 2.0, 3.0];
    let x = Tensor::from_data(&list, &tour.here)?;
    tour.answer("Tensor::from_data(&list, &here)?.device()", x.device())?;
    let mut tensors: Vec<Tensor> = vec![x.clone(), x.mul(10.0)?];
    tensors.push(x.mul(100.0)?);
    let devices: Vec<String> = tensors.iter().map(|t| t.device().to_string()).collect();
    tour.answer("devices of a Vec<Tensor>", devices.join(", "))?;
    let stacked = Tensor::stack(&tensors.iter().collect::<Vec<_>>(), 0)?;
    tour.answer("Tensor::stack(…)?.shape()", stacked.shape())?;
    tour.answer("and its device", stacked.device())?;
    tour.answer(
        "stacked.to_vec2::<f32>()?, on the host",
        format!("{:?}", stacked.to_vec2::<f32>()?),
    )?;
    Ok(())
}

fn parameters(tour: &mut Tour) -> Outcome {
    tour.ask("How do parameters come back into a Vec, and can they stay on the device?")?;
    let layer = Linear::new(2, 1, &tour.here)?;
    let values: Vec<Tensor> = layer.parameters().iter().map(Parameter::value).collect();
    let devices: Vec<String> = values.iter().map(|t| t.device().to_string()).collect();
    tour.answer(
        "a Vec<Tensor> of them stays where it is",
        devices.join(", "),
    )?;
    let mut numbers: Vec<f32> = Vec::new();
    for value in &values {
        numbers.extend(value.to_vec::<f32>()?);
    }
    tour.answer(
        "to_vec::<f32>()? of each, numbers on the host",
        numbers.len(),
    )?;
    Ok(())
}

fn indexing(tour: &mut Tour) -> Outcome {
    tour.ask("Does indexing stay on the device?")?;
    let x = Tensor::arange(0.0f32, 12.0, 1.0, &tour.here)?.reshape([3, 4])?;
    let row = x.select(0, 1)?;
    tour.answer("x.select(0, 1)?.device()", row.device())?;
    tour.answer("and it is a view, no copy", row.shares_memory_with(&x))?;
    let every_second = x.slice(1, None, None, 2)?;
    tour.answer(
        "x.slice(1, None, None, 2)?.shares_memory_with(&x)",
        every_second.shares_memory_with(&x),
    )?;
    let ids = Tensor::from_data([2i64, 0], &tour.here)?;
    tour.answer(
        "x.index_select(0, &ids)?.device()",
        x.index_select(0, &ids)?.device(),
    )?;
    tour.answer(
        "x.select(0, 1)?.select(0, 2)?.item::<f32>()?, a number on the host",
        row.select(0, 2)?.item::<f32>()?,
    )?;
    Ok(())
}

fn placing(tour: &mut Tour) -> Outcome {
    tour.ask("Is a model placed when it is made, or later? What of the optimizer?")?;
    let made = Linear::new(4, 2, &tour.there)?;
    tour.answer(
        "Linear::new(4, 2, &there)?, its weight",
        made.weight.device(),
    )?;
    let model = Linear::new(4, 2, &tour.here)?;
    let mut optimizer = Sgd::new(model.parameters(), 0.1);
    model.to(&tour.there)?;
    tour.answer(
        "made here, then model.to(&there)?, its weight",
        model.weight.device(),
    )?;
    // The optimizer holds the same cells: made before the move, it is right after it.
    let before = model.weight.value().to_vec::<f32>()?;
    let x = Tensor::ones([1, 4], DType::F32, &tour.there)?;
    model.forward(&x)?.sum(())?.backward()?;
    optimizer.step()?;
    let moved = model.weight.value().to_vec::<f32>()? != before;
    tour.answer("an optimizer made before the move trains it", moved)?;
    Ok(())
}

fn inputs(tour: &mut Tour) -> Outcome {
    tour.ask("Does a model move its inputs to where it is?")?;
    let model = Linear::new(4, 2, &tour.there)?;
    let x = Tensor::ones([1, 4], DType::F32, &tour.here)?;
    let refused = model.forward(&x).err().map(|error| error.to_string());
    tour.answer(
        "model.forward(&x), the model there and x here",
        refused.unwrap_or_default(),
    )?;
    let y = model.forward(&x.to(&tour.there)?)?;
    tour.answer("model.forward(&x.to(&there)?)?.device()", y.device())?;
    Ok(())
}

fn fetching(tour: &mut Tour) -> Outcome {
    tour.ask("How does a tensor come to the host?")?;
    let x = Tensor::ones([2], DType::F32, &tour.there)?;
    tour.answer("x.cpu()?.device()", x.cpu()?.device())?;
    tour.answer("x itself stays", x.device())?;
    tour.answer(
        "x.to_vec::<f32>()?, without cpu()",
        format!("{:?}", x.to_vec::<f32>()?),
    )?;
    Ok(())
}

fn printing(tour: &mut Tour) -> Outcome {
    tour.ask("Must a tensor come to the host to be printed?")?;
    let x = Tensor::from_data([[1.0f32, 2.5], [3.0, 4.0]], &tour.there)?;
    tour.answer("println!(\"{x}\")", format!("{x}").replace('\n', "\n     "))?;
    Ok(())
}

fn twice(tour: &mut Tour) -> Outcome {
    tour.ask("What does `to` do with a tensor that is there already?")?;
    let x = Tensor::ones([1000], DType::F32, &tour.here)?;
    let again = x.to(&tour.here)?.to(&tour.here)?;
    tour.answer(
        "x.to(&here)?.to(&here)?, the same memory",
        again.shares_memory_with(&x),
    )?;
    let moved = x.to(&tour.there)?;
    tour.answer(
        "x.to(&there)?, the same memory",
        moved.shares_memory_with(&x),
    )?;
    Ok(())
}

fn training(tour: &mut Tour) -> Outcome {
    tour.ask("Do the loss and the optimizer have to move?")?;
    let model = Linear::new(4, 3, &tour.here)?;
    let criterion = CrossEntropyLoss::new();
    let mut optimizer = Adam::new(model.parameters(), 0.01);
    // A step fills the optimizer's moments, here.
    let _ = step(&model, &criterion, &mut optimizer, &tour.here)?;
    model.to(&tour.there)?;
    criterion.to(&tour.there)?; // a loss with class weights has something to move
    optimizer.to(&tour.there)?; // moves the moments; PyTorch has no such call
    let loss = step(&model, &criterion, &mut optimizer, &tour.there)?;
    tour.answer(
        "a step after model, loss and optimizer moved, its loss is on",
        loss.device(),
    )?;
    Ok(())
}

fn step(
    model: &Linear,
    criterion: &CrossEntropyLoss,
    optimizer: &mut Adam,
    device: &Device,
) -> Result<Tensor> {
    let x = Tensor::ones([2, 4], DType::F32, device)?;
    let labels = Tensor::from_data([0i64, 2], device)?;
    let loss = criterion.forward(&model.forward(&x)?, &labels)?;
    optimizer.zero_grad();
    loss.backward()?;
    optimizer.step()?;
    Ok(loss)
}

fn functions(tour: &mut Tour) -> Outcome {
    tour.ask("Does a function have a device?")?;
    let double = |x: &Tensor| x.mul(2.0);
    let here = double(&Tensor::ones([1], DType::F32, &tour.here)?)?;
    let there = double(&Tensor::ones([1], DType::F32, &tour.there)?)?;
    let devices = format!("{}, {}", here.device(), there.device());
    tour.answer(
        "no, its tensors have: the same function gave results on",
        devices,
    )?;
    Ok(())
}

fn mixing(tour: &mut Tour) -> Outcome {
    tour.ask("May tensors of two devices meet in one operation?")?;
    let a = Tensor::ones([2, 3], DType::F32, &tour.here)?;
    let b = Tensor::ones([2, 3], DType::F32, &tour.there)?;
    let refused = a.add(&b).err().map(|error| error.to_string());
    tour.answer("a.add(&b), a here and b there", refused.unwrap_or_default())?;
    tour.answer(
        "a.add(&b.to(a.device())?)?.device()",
        a.add(&b.to(a.device())?)?.device(),
    )?;
    Ok(())
}

const PROGRAM: Program = Program {
    name: "device_tour",
    about: "Shows what lives on which device, and what moves it.",
    data: None,
    save: None,
};

fn main() -> ExitCode {
    PROGRAM.main(run)
}
