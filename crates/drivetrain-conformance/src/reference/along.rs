//! Primitives along dimensions on host values: reductions, products, lookups, running sums, sorting.

use super::functions::{maximum, minimum};
use super::values::{Values, View};
use drivetrain_core::{ArgReduceOp, CumulativeOp, DimSet, Error, ReduceOp, Result, ScatterMode};
use std::cmp::Ordering;

/// Row-major index of each element along `dim`, and where its line begins and how far apart its elements are.
struct Lines {
    outer: usize,
    length: usize,
    inner: usize,
}

impl Lines {
    fn new(dims: &[usize], dim: usize) -> Lines {
        Lines {
            outer: dims[..dim].iter().product(),
            length: dims[dim],
            inner: dims[dim + 1..].iter().product(),
        }
    }

    /// The places of each line, in row-major order of the other dimensions.
    fn iter(&self) -> impl Iterator<Item = Vec<usize>> + '_ {
        (0..self.outer * self.inner).map(|line| {
            let first = line / self.inner * self.length * self.inner + line % self.inner;
            (0..self.length).map(|i| first + i * self.inner).collect()
        })
    }
}

/// For each element the place of its result, where the dimensions of `dims` are reduced to size 1.
fn reduced_places(sizes: &[usize], dims: DimSet) -> (Vec<usize>, usize) {
    let kept: Vec<usize> = (sizes.iter().enumerate())
        .map(|(i, &size)| if dims.contains(i) { 1 } else { size })
        .collect();
    let count: usize = sizes.iter().product();
    let place = |mut i: usize| {
        let (mut place, mut step) = (0, 1);
        for dim in (0..sizes.len()).rev() {
            place += i % sizes[dim] % kept[dim] * step;
            step *= kept[dim];
            i /= sizes[dim];
        }
        place
    };
    ((0..count).map(place).collect(), kept.iter().product())
}

pub(super) fn reduce(op: ReduceOp, x: &View, dims: DimSet) -> Values {
    let (places, count) = reduced_places(&x.dims, dims);
    match &x.values {
        Values::Float(values) => {
            let (start, join): (f64, fn(f64, f64) -> f64) = match op {
                ReduceOp::Sum => (0.0, |a, b| a + b),
                ReduceOp::Prod => (1.0, |a, b| a * b),
                ReduceOp::Max => (f64::NEG_INFINITY, maximum),
                ReduceOp::Min => (f64::INFINITY, minimum),
            };
            Values::Float(fold(values, &places, count, start, join))
        }
        Values::Int(values) => {
            let (start, join): (i64, fn(i64, i64) -> i64) = match op {
                ReduceOp::Sum => (0, i64::wrapping_add),
                ReduceOp::Prod => (1, i64::wrapping_mul),
                ReduceOp::Max => (i64::MIN, i64::max),
                ReduceOp::Min => (i64::MAX, i64::min),
            };
            Values::Int(fold(values, &places, count, start, join))
        }
    }
}

fn fold<T: Copy>(
    values: &[T],
    places: &[usize],
    count: usize,
    start: T,
    join: fn(T, T) -> T,
) -> Vec<T> {
    let mut results = vec![start; count];
    for (&value, &place) in values.iter().zip(places) {
        results[place] = join(results[place], value);
    }
    results
}

/// Order of elements `i` and `j`; NaN counts as the largest.
fn order(values: &Values, i: usize, j: usize) -> Ordering {
    match values {
        Values::Float(v) => (v[i].is_nan().cmp(&v[j].is_nan()))
            .then(v[i].partial_cmp(&v[j]).unwrap_or(Ordering::Equal)),
        Values::Int(v) => v[i].cmp(&v[j]),
    }
}

pub(super) fn arg_reduce(op: ArgReduceOp, x: &View, dim: usize) -> Values {
    let is_nan = |i: usize| x.values.scalar(i).as_f64().is_nan();
    let better = |i: usize, best: usize| match op {
        ArgReduceOp::Max => order(&x.values, i, best).is_gt(),
        ArgReduceOp::Min if is_nan(best) => false,
        ArgReduceOp::Min => is_nan(i) || order(&x.values, i, best).is_lt(),
    };
    let find = |line: Vec<usize>| {
        let mut best = 0;
        for i in 1..line.len() {
            if better(line[i], line[best]) {
                best = i;
            }
        }
        best as i64
    };
    Values::Int(Lines::new(&x.dims, dim).iter().map(find).collect())
}

pub(super) fn matmul(a: &View, b: &View) -> Values {
    let rank = a.dims.len();
    let (m, k, n) = (a.dims[rank - 2], a.dims[rank - 1], b.dims[rank - 1]);
    let batch: usize = a.dims[..rank - 2].iter().product();
    let places = (0..batch * m * n).map(|i| (i / (m * n), i / n % m, i % n));
    let left = move |batch: usize, row: usize, j: usize| (batch * m + row) * k + j;
    let right = move |batch: usize, j: usize, column: usize| (batch * k + j) * n + column;
    match (&a.values, &b.values) {
        (Values::Int(a), Values::Int(b)) => {
            let dot = |(batch, row, column)| {
                let term = |j| a[left(batch, row, j)].wrapping_mul(b[right(batch, j, column)]);
                (0..k).map(term).fold(0i64, i64::wrapping_add)
            };
            Values::Int(places.map(dot).collect())
        }
        (a, b) => {
            let dot = |(batch, row, column)| {
                let value = |v: &Values, i| v.scalar(i).as_f64();
                let term = |j| value(a, left(batch, row, j)) * value(b, right(batch, j, column));
                (0..k).map(term).sum()
            };
            Values::Float(places.map(dot).collect())
        }
    }
}

/// For each element of the index the place in a tensor of these sizes that it points to.
fn pointed(name: &'static str, sizes: &[usize], index: &View, dim: usize) -> Result<Vec<usize>> {
    let mut places = Vec::with_capacity(index.values.len());
    for (i, &value) in index.values.ints().iter().enumerate() {
        let at = usize::try_from(value).ok().filter(|&at| at < sizes[dim]);
        let at = at.ok_or_else(|| {
            Error::value(
                name,
                format!(
                    "index {value} out of range for dimension {dim} of size {}",
                    sizes[dim]
                ),
            )
        })?;
        let (mut place, mut step, mut rest) = (0, 1, i);
        for d in (0..sizes.len()).rev() {
            let own = rest % index.dims[d];
            rest /= index.dims[d];
            place += if d == dim { at } else { own } * step;
            step *= sizes[d];
        }
        places.push(place);
    }
    Ok(places)
}

pub(super) fn gather(x: &View, index: &View, dim: usize) -> Result<Values> {
    let places = pointed("gather", &x.dims, index, dim)?;
    Ok(x.values.pick(places.into_iter()))
}

pub(super) fn scatter(
    destination: &View,
    index: &View,
    source: &View,
    dim: usize,
    mode: ScatterMode,
) -> Result<Values> {
    let places = pointed(mode.name(), &destination.dims, index, dim)?;
    let mut result = destination.values.clone();
    match (&mut result, &source.values) {
        (Values::Float(result), Values::Float(source)) => {
            put(result, &places, source, mode, |a, b| a + b)
        }
        (Values::Int(result), Values::Int(source)) => {
            put(result, &places, source, mode, i64::wrapping_add)
        }
        _ => return Err(Error::dtype(mode.name(), "floats into integers")),
    }
    Ok(result)
}

fn put<T: Copy>(
    result: &mut [T],
    places: &[usize],
    source: &[T],
    mode: ScatterMode,
    add: fn(T, T) -> T,
) {
    for (&place, &value) in places.iter().zip(source) {
        result[place] = match mode {
            ScatterMode::Add => add(result[place], value),
            ScatterMode::Set => value,
        };
    }
}

pub(super) fn cumulative(op: CumulativeOp, x: &View, dim: usize) -> Values {
    let mut result = x.values.clone();
    for line in Lines::new(&x.dims, dim).iter() {
        for pair in line.windows(2) {
            match &mut result {
                Values::Float(v) => {
                    v[pair[1]] = match op {
                        CumulativeOp::Sum => v[pair[0]] + v[pair[1]],
                        CumulativeOp::Prod => v[pair[0]] * v[pair[1]],
                    }
                }
                Values::Int(v) => {
                    v[pair[1]] = match op {
                        CumulativeOp::Sum => v[pair[0]].wrapping_add(v[pair[1]]),
                        CumulativeOp::Prod => v[pair[0]].wrapping_mul(v[pair[1]]),
                    }
                }
            }
        }
    }
    result
}

/// Values and the indices they came from.
pub(super) fn sort(x: &View, dim: usize, descending: bool) -> [Values; 2] {
    let mut from: Vec<usize> = (0..x.values.len()).collect();
    let mut indices = vec![0; from.len()];
    for line in Lines::new(&x.dims, dim).iter() {
        let mut ranks: Vec<usize> = (0..line.len()).collect();
        ranks.sort_by(|&i, &j| {
            let order = order(&x.values, line[i], line[j]);
            if descending { order.reverse() } else { order }
        });
        for (&place, &rank) in line.iter().zip(&ranks) {
            from[place] = line[rank];
            indices[place] = rank as i64;
        }
    }
    [x.values.pick(from.into_iter()), Values::Int(indices)]
}
