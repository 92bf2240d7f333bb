//! The table of kernels: the file, the name and the signature of each.
//!
//! For every kernel there is a function of the same name that launches it. The callers, which are the public functions of
//! this crate, check first that all arrays are as long as the kernel reads and writes.

#![allow(clippy::too_many_arguments, reason = "kernels take arrays and their sizes one by one")]

use super::array::{View as In, ViewMut as Out};
use super::error::CudaError;
use super::handle::Device;
use super::launch::{Argument, note_grid};
use cudarc::driver::LaunchConfig;
use half::{bf16, f16};

/// The kernel that needs more than 48 KiB of shared memory, which must be requested: it multiplies tiles.
pub(super) const TILED_KERNEL: &str = "minus_powers";

/// Its shared memory in bytes: three tiles, and room to align them.
pub(crate) const TILED_MEMORY: u32 = 3 * 128 * 256 * 2 + 1024;

macro_rules! kernels {
    ($($file:literal { $($name:ident($($arg:ident: $kind:ty),*);)* })*) => {
        /// CUDA C sources. They are compiled as one, since later files use functions of earlier ones.
        pub(super) const SOURCES: &[&str] = &[$(include_str!(concat!("../", $file))),*];

        /// Names of all kernels.
        pub const KERNELS: &[&str] = &[$($(stringify!($name),)*)*];

        /// Names and parameters of all kernels, in CUDA C.
        #[cfg(test)]
        fn signatures() -> Vec<(&'static str, Vec<String>)> {
            vec![$($(
                (stringify!($name), vec![$(
                    format!("{} {}", <$kind as Argument>::c_type(), stringify!($arg)),
                )*]),
            )*)*]
        }

        $($(
            pub(crate) fn $name(
                device: &Device,
                config: LaunchConfig,
                $(mut $arg: $kind),*
            ) -> Result<(), CudaError> {
                $($arg.check(device);)*
                let name: &'static str = stringify!($name);
                let note = |notes: &mut Vec<u64>| {
                    notes.extend([name.as_ptr() as u64, name.len() as u64]);
                    note_grid(&config, notes);
                    notes.extend([$($arg.bits(device)),*]);
                };
                if device.is_only_noted(note) {
                    return Ok(());
                }
                let mut launch = device.launch_builder(name);
                $($arg.push(&mut launch);)*
                // SAFETY: the types and the order of the arguments are those of the kernel, as a test checks. The
                // callers check the lengths of arrays.
                unsafe { launch.launch(config) }
                    .map(|_| ())
                    .map_err(CudaError::failed("launch a kernel"))
            }
        )*)*
    };
}

kernels! {
    "nn/formats.cu" {
        to_half(out: Out<f16>, x: In<f32>, n: i64);
        to_bf16(out: Out<bf16>, x: In<f32>, n: i64);
        to_half_and_bf16(half: Out<f16>, bf16: Out<bf16>, x: In<f32>, n: i64);
    }
    "nn/layers.cu" {
        gather_rows(
            out: Out<f32>, stride: i32, col: i32, table: In<f32>, idxs: In<u32>, n: i32, dim: i32
        );
        add_to_rows(
            table: Out<f32>, idxs: In<u32>, rows: In<f32>, stride: i32, col: i32, n: i32, dim: i32
        );
        add_sums_of_groups(
            table: Out<f32>, idxs: In<u32>, rows: In<f32>, stride: i32, col: i32, size: i32,
            n_groups: i32, dim: i32
        );
        gather_square(
            out: Out<f32>, table: In<f32>, rows: In<u32>, columns: In<u32>, n: i32, stride: i32
        );
        add_to_square(table: Out<f32>, values: In<f32>, idxs: In<u32>, n: i32, stride: i32);
        bias_relu(x: Out<f32>, bias: In<f32>, n: i32, dim: i32, rate: f32, seed: u64);
        bias_relu_half(
            x: Out<f16>, rounded: Out<bf16>, bias: In<f32>, n: i32, dim: i32, rate: f32, seed: u64
        );
        relu_backward(
            d_z: Out<f32>, partial: Out<f32>, y: In<f32>, d_y: In<f32>, n: i32, dim: i32,
            scale: f32
        );
        relu_backward_bf16(
            d_z: Out<bf16>, partial: Out<f32>, y: In<bf16>, d_y: In<f32>, n: i32, dim: i32,
            scale: f32
        );
        add_column_sums(out: Out<f32>, partial: In<f32>, n: i32, stride: i32, first: i32, dim: i32);
        scaled_to_bf16(out: Out<bf16>, x: In<f32>, scale: In<f32>, n: i32, dim: i32);
        scale_rows(x: Out<f32>, scale: In<f32>, n: i32, dim: i32);
    }
    "nn/norms.cu" {
        norm_of_sum(
            out: Out<f32>, normalized: Out<f32>, inverse_deviation: Out<f32>, positive: Out<u32>,
            a: In<f32>, b: In<f32>, bias: In<f32>, gain: In<f32>, offset: In<f32>, n: i32, dim: i32,
            rate: f32, seed: u64
        );
        norm_of_sum_half(
            out: Out<f32>, normalized: Out<f16>, inverse_deviation: Out<f32>, positive: Out<u32>,
            a: In<f16>, b: In<f16>, bias: In<f32>, gain: In<f32>, offset: In<f32>, n: i32, dim: i32,
            rate: f32, seed: u64
        );
        norm_backward(
            d_sum: Out<f32>, d_z: Out<f32>, partial: Out<f32>, d_out: In<f32>, normalized: In<f32>,
            inverse_deviation: In<f32>, positive: In<u32>, gain: In<f32>, n: i32, dim: i32,
            scale: f32
        );
        norm_backward_bf16(
            d_sum: Out<f32>, d_z: Out<bf16>, partial: Out<f32>, d_out: In<f32>, normalized: In<f16>,
            inverse_deviation: In<f32>, positive: In<u32>, gain: In<f32>, n: i32, dim: i32,
            scale: f32
        );
    }
    "nn/optimizer.cu" {
        square_sums(partial: Out<f64>, x: In<f32>, n: i64);
        step_scale(
            result: Out<f64>, partial: In<f64>, n_partial: i32, log_probs: In<f64>,
            n_sentences: i32, per_token: f64, clip: f64
        );
        adamw(
            weights: Out<f32>, mean: Out<f32>, square: Out<f32>, gradient: In<f32>, n: i64,
            result: In<f64>, beta_1: f32, beta_2: f32, rest_1: f32, rest_2: f32, epsilon: f32,
            kept: f32, rate: f32, root_scale: f32
        );
        average(mean: Out<f32>, weights: In<f32>, n: i64, rate: f32);
        sgd(weights: Out<f32>, gradient: In<f32>, n: i64, result: In<f64>, rate: f32);
    }
    "nn/recurrent.cu" {
        transpose(out: Out<f32>, x: In<f32>, n: i32, m: i32);
        keep_rows(out: Out<f32>, x: In<f32>, fresh: In<u32>, has_fresh: i32, n: i32, dim: i32);
        elman_step(
            hidden: Out<f32>, next: Out<f32>, fresh: In<u32>, has_fresh: i32, n: i32, dim: i32,
            is_sigmoid: i32
        );
        elman_backward(
            delta: Out<f32>, d_out: In<f32>, later: In<f32>, has_later: i32, fresh: In<u32>,
            has_fresh: i32, hidden: In<f32>, n: i32, dim: i32, is_sigmoid: i32
        );
        elman_product_step(
            hidden: Out<f32>, states: Out<f32>, recurrent: In<f32>, fresh: In<u32>, has_fresh: i32,
            n: i32, dim: i32, is_sigmoid: i32
        );
        elman_product_backward(
            deltas: Out<f32>, d_out: In<f32>, transposed: In<f32>, has_later: i32, fresh: In<u32>,
            has_fresh: i32, hidden: In<f32>, n: i32, dim: i32, is_sigmoid: i32
        );
        lstm_step(
            gates: Out<f32>, hidden: Out<f32>, tanh_cell: Out<f32>, next: Out<f32>, cells: Out<f32>,
            bias: In<f32>, fresh: In<u32>, has_fresh: i32, n: i32, dim: i32
        );
        lstm_product_step(
            gates: Out<f32>, hidden: Out<f32>, tanh_cell: Out<f32>, states: Out<f32>,
            cells: Out<f32>, recurrent: In<f32>, bias: In<f32>, fresh: In<u32>, has_fresh: i32,
            n: i32, dim: i32
        );
        lstm_backward(
            gates: Out<f32>, later_cell: Out<f32>, d_out: In<f32>, later: In<f32>, has_later: i32,
            fresh: In<u32>, has_fresh: i32, previous_cell: In<f32>, tanh_cell: In<f32>, n: i32,
            dim: i32
        );
        lstm_product_backward(
            gates: Out<f32>, later_cell: Out<f32>, d_out: In<f32>, transposed: In<f32>,
            has_later: i32, fresh: In<u32>, has_fresh: i32, previous_cell: In<f32>,
            tanh_cell: In<f32>, n: i32, dim: i32
        );
    }
    "nn/words.cu" {
        dropout(out: Out<f32>, x: In<f32>, n: i32, period: i32, rate: f32, seed: u64);
        dropout_in_place(x: Out<f32>, n: i32, period: i32, rate: f32, seed: u64);
        drop_words(rows: Out<f32>, words: In<u32>, dim: i32, rate: f32, seed: u64);
        add_scaled(y: Out<f32>, x: In<f32>, n: i32, scale: f32);
        draw_words(words: Out<u32>, logits: In<f32>, bias: In<f32>, n_words: i32, seed: u64);
        next_words(
            logits: Out<f32>, log_probs: Out<f64>, bias: In<f32>, targets: In<u32>, n_words: i32,
            learns: i32
        );
        add_rows_of_words(
            table: Out<f32>, rows: In<f32>, words: In<u32>, starts: In<u32>, places: In<u32>,
            dim: i32
        );
    }
    "hmm/transition.cu" {
        row_log_sums(log_sums: Out<f32>, logits: In<f32>, n: i32);
        gather_blocks(
            blocks: Out<f32>, logits: In<f32>, log_sums: In<f32>, from: In<u32>, to: In<u32>,
            k: i32, n: i32, first_row: i32
        );
        transition_gradient(
            logits: Out<f32>, log_sums: In<f32>, left: In<f32>, ratios: In<f32>, block_of: In<u32>,
            k: i32, n: i32
        );
        row_log_sums_half(log_sums: Out<f32>, logits: In<f16>, n: i32);
        gather_blocks_half(
            blocks: Out<f32>, logits: In<f16>, log_sums: In<f32>, from: In<u32>, to: In<u32>,
            k: i32, n: i32, first_row: i32
        );
        minus_probabilities_half(
            logits: Out<f16>, sums: Out<f32>, blocks: Out<f32>, block_of: In<u32>, k: i32, n: i32
        );
        softmax(values: Out<f32>, n: i32);
        softmax_gradient(values: Out<f32>, counts: In<f32>, n: i32);
    }
    "hmm/exponentials.cu" {
        tile_columns(out: Out<f16>, to: In<f16>, n: i32);
        minus_powers(
            powers: Out<bf16>, parts: Out<f32>, from: In<f16>, tiles: In<f16>, n_from: i32, n: i32,
            n_own: i32
        );
        add_parts(sums: Out<f32>, parts: In<f32>, n_from: i32, n: i32, n_own: i32);
        gather_powers(
            blocks: Out<f32>, powers: In<bf16>, sums: In<f32>, from: In<u32>, to: In<u32>, k: i32,
            n: i32
        );
        row_factors(factors: Out<f32>, left: In<f32>, sums: In<f32>, n: i32);
    }
    "hmm/emission.cu" {
        mask_emissions(
            logits: Out<f32>, allowed: In<u32>, stride: i32, kept: In<u32>, cluster_of: In<u32>,
            places: In<u32>, n_used: u32, n_slots: i32, k: i32
        );
        gather_emissions(
            logits: Out<f32>, table: In<f32>, kept: In<u32>, cluster_of: In<u32>, places: In<u32>,
            n_used: u32, n_slots: i32, k: i32, n_own: i32
        );
        add_to_emissions(
            table: Out<f32>, values: In<f32>, kept: In<u32>, cluster_of: In<u32>, places: In<u32>,
            n_used: u32, n_slots: i32, k: i32, n_own: i32
        );
        emission_logits(
            logits: Out<f32>, parts: In<u32>, places: In<u32>, n_used: u32, words: In<f32>,
            bias: In<f32>, states: In<f32>, k: i32, dim: i32, is_fast: i32
        );
        emission_softmax(
            table: Out<f32>, begins: In<u32>, places: In<u32>, n_used: u32, k: i32
        );
        emission_gradient(
            table: Out<f32>, counts: In<f32>, count_of: In<u32>, visits: In<f32>,
            cluster_of: In<u32>, places: In<u32>, n_used: u32, n_slots: i32, k: i32
        );
        emission_to_words(
            d_words: Out<f32>, parts: In<u32>, places: In<u32>, n_used: u32, g: In<f32>,
            states: In<f32>, k: i32, dim: i32, is_fast: i32
        );
        emission_to_states(
            d_states: Out<f32>, begins: In<u32>, places: In<u32>, n_used: u32, g: In<f32>,
            words: In<f32>, k: i32, dim: i32, is_fast: i32
        );
        emission_to_bias(
            d_bias: Out<f32>, g: In<f32>, cluster_of: In<u32>, places: In<u32>, n_used: u32,
            n_slots: i32, k: i32
        );
    }
    "hmm/recursion.cu" {
        place(local: Out<f32>, emission: In<f32>, slots: In<u32>, n_tokens: i32, k: i32);
        passes(
            alpha: Out<f32>, betas: Out<f32>, weighted: Out<f32>, log_probs: Out<f64>,
            local: In<f32>, start: In<f32>, blocks: In<f32>, offsets: In<u32>, clusters: In<u32>,
            block_of_pair: In<u32>, k: i32
        );
        join_passes(alpha: Out<f32>, nodes: Out<f32>, n_tokens: i32, k: i32);
        collect_ratios(
            ratios: Out<f32>, alpha: In<f32>, weighted: In<f32>, begins: In<u32>, tokens: In<u32>,
            k: i32
        );
        collect_differences(
            differences: Out<bf16>, blocks: In<f32>, left: In<f32>, row_sums: In<f32>,
            alpha: In<f32>, weighted: In<f32>, from: In<u32>, to: In<u32>, begins: In<u32>,
            tokens: In<u32>, k: i32, n: i32
        );
        sum_groups(
            out: Out<f32>, nodes: In<f32>, rows: In<u32>, begins: In<u32>, tokens: In<u32>, k: i32
        );
    }
    "hmm/listed.cu" {
        gather_listed(out: Out<f32>, values: In<f32>, listed: In<u32>, n_places: i32);
        scatter_listed(
            out: Out<f32>, values: In<f32>, listed: In<u32>, n_places: i32, k: i32, n: i32
        );
        place_listed(
            local: Out<f32>, emission: In<f32>, slots: In<u32>, groups: In<u32>, listed: In<u32>,
            n_tokens: i32, k: i32, n: i32
        );
        gather_listed_blocks(
            blocks: Out<f32>, logits: In<f32>, log_sums: In<f32>, from: In<u32>, to: In<u32>,
            listed: In<u32>, k: i32, n: i32, first_row: u32, n_rows: u32
        );
        sum_listed(
            visits: Out<f32>, starts: Out<f32>, left: Out<f32>, nodes: In<f32>, begins: In<u32>,
            entries: In<u32>, ends: In<u32>, k: i32, n: i32
        );
        listed_transition_gradient(
            logits: Out<f32>, log_sums: In<f32>, left: In<f32>, blocks: In<f32>, alpha: In<f32>,
            weighted: In<f32>, groups: In<u32>, block_of_pair: In<u32>, listed: In<u32>,
            begins: In<u32>, entries: In<u32>, ends: In<u32>, k: i32, n: i32
        );
    }
    "hmm/lockstep.cu" {
        forward_rows(
            alpha: Out<f32>, log_probs: Out<f64>, predicted: In<f32>, local: In<f32>, is_first: i32,
            k: i32
        );
        backward_rows(
            betas: Out<f32>, weighted: Out<f32>, predicted: In<f32>, local: In<f32>,
            n_predicted: i32, k: i32
        );
    }
    "hmm/masses.cu" {
        token_masses(
            masses: Out<f64>, alpha: In<f32>, local: In<f32>, start: In<f32>, blocks: In<f32>,
            offsets: In<u32>, clusters: In<u32>, block_of_pair: In<u32>, n_sentences: i32, k: i32
        );
        mass_rows(
            masses: Out<f64>, predicted: In<f32>, before: In<f32>, local: In<f32>, is_first: i32,
            k: i32
        );
    }
    "hmm/paths.cu" {
        best_paths(
            path: Out<u32>, scales: Out<f32>, best: Out<f32>, local: In<f32>, start: In<f32>,
            blocks: In<f32>, offsets: In<u32>, clusters: In<u32>, block_of_pair: In<u32>, k: i32
        );
    }
    "hmm/counts.cu" {
        copy_blocks(
            blocks: Out<f32>, transition: In<f32>, from: In<u32>, to: In<u32>, k: i32, n: i32
        );
        add_transitions(
            counts: Out<f64>, ratios: In<f32>, transition: In<f32>, from: In<u32>, to: In<u32>,
            k: i32, n: i32
        );
        add_emissions(counts: Out<f64>, rows: In<f32>, count_of: In<u32>, k: i32);
        add_values(counts: Out<f64>, values: In<f32>, n: i32);
        add_sum(total: Out<f64>, values: In<f64>, n: i32);
        share_rows(out: Out<f32>, counts: In<f64>, prior: f64, n: i32);
        share_columns(
            out: Out<f32>, counts: In<f64>, begins: In<u32>, allowed: In<u32>, stride: i32,
            prior: f64, k: i32
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernels of a CUDA C source and their parameters.
    fn parse(source: &str) -> Vec<(&str, Vec<String>)> {
        let kernels = source.split("extern \"C\" __global__ void").skip(1).map(|text| {
            let bounds = text.trim_start().strip_prefix("__launch_bounds__(");
            let text = bounds.and_then(|text| text.split_once(')')).map_or(text, |(_, text)| text);
            let (name, text) = text.split_once('(').unwrap();
            let (parameters, _) = text.split_once(')').unwrap();
            (name.trim(), parameters.split(',').map(parameter).collect())
        });
        kernels.collect()
    }

    fn parameter(text: &str) -> String {
        let words: Vec<_> =
            text.split_whitespace().filter(|word| *word != "__restrict__").collect();
        let text = words.join(" ");
        // Some kernels read `u32::MAX` as -1, and a `Part` is three numbers.
        text.replace("const int*", "const unsigned*").replace("const Part*", "const unsigned*")
    }

    #[test]
    fn the_table_agrees_with_the_sources() {
        let parsed: Vec<_> = SOURCES.iter().flat_map(|source| parse(source)).collect();
        assert_eq!(signatures(), parsed);
        let names: Vec<_> = parsed.iter().map(|(name, _)| *name).collect();
        assert_eq!(KERNELS, names);
    }
}
