//! Every differentiable method against finite differences in F64: first and second order, contiguous and strided
//! inputs, and beside another use of the same inputs. Inputs are away from ties and kinks.

mod check;
mod elementwise;
mod layers;
mod reduce;
mod shape;
