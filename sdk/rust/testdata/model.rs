//! A small mixture of experts that really computes, for the engines of README.md.
#![allow(dead_code)] // an engine uses only a part

use std::{env, path::Path, thread, time::Duration};

pub const LAYERS: usize = 2;
pub const EXPERTS: usize = 4;
pub const USED: usize = 2;
pub const WIDTH: usize = 16;
pub const WORDS: usize = 64;
pub const CONTEXT: u64 = 128;

type Matrix = Vec<[f64; WIDTH]>;

pub struct Model {
    attention: Vec<Matrix>,
    gate: Vec<Matrix>,
    expert: Vec<Vec<Matrix>>,
    embedding: Matrix,
    state: [f64; WIDTH],
    seed: u64,
}

fn random(seed: &mut u64) -> f64 {
    *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*seed >> 33) as f64 / (1u64 << 31) as f64 - 0.5
}

fn times(m: &Matrix, x: &[f64; WIDTH]) -> Vec<f64> {
    m.iter().map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum()).collect()
}

fn best(values: &[f64]) -> usize {
    (0..values.len()).max_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap_or(0)
}

/// Waits, at most 20 s, for the file with which the test says that it watches.
fn wait() {
    let Ok(path) = env::var("MODEL_WAIT") else { return };
    for _ in 0..20_000 {
        if Path::new(&path).exists() {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

impl Model {
    /// The weights are random.
    pub fn load(_path: &str) -> Model {
        let mut seed = 1;
        let mut matrix = |rows| (0..rows).map(|_| std::array::from_fn(|_| random(&mut seed))).collect::<Matrix>();
        let attention = (0..LAYERS).map(|_| matrix(WIDTH)).collect();
        let gate = (0..LAYERS).map(|_| matrix(EXPERTS)).collect();
        let expert = (0..LAYERS).map(|_| (0..EXPERTS).map(|_| matrix(WIDTH)).collect()).collect();
        let embedding = matrix(WORDS);
        Model { attention, gate, expert, embedding, state: [0.0; WIDTH], seed }
    }

    pub fn tokenize(&self, text: &str) -> Vec<u32> {
        wait();
        text.bytes().map(|b| u32::from(b) % WORDS as u32).collect()
    }

    pub fn embed(&mut self, ids: &[u32]) {
        for &id in ids {
            self.state = std::array::from_fn(|i| self.state[i] / 2.0 + self.embedding[id as usize][i]);
        }
    }

    pub fn attention(&mut self, layer: usize) {
        let out = times(&self.attention[layer], &self.state);
        self.state = std::array::from_fn(|i| self.state[i] + out[i].tanh());
    }

    pub fn router(&self, layer: usize) -> [u16; USED] {
        let mut out = times(&self.gate[layer], &self.state);
        std::array::from_fn(|_| {
            let e = best(&out);
            out[e] = f64::MIN;
            e as u16
        })
    }

    pub fn experts(&mut self, layer: usize, picks: [u16; USED]) {
        for e in picks {
            let out = times(&self.expert[layer][usize::from(e)], &self.state);
            self.state = std::array::from_fn(|i| (self.state[i] + out[i]).tanh());
        }
    }

    pub fn head(&self) -> Vec<f64> {
        times(&self.embedding, &self.state)
    }

    pub fn sample(&mut self, logits: &[f64]) -> u32 {
        let noisy: Vec<f64> = logits.iter().map(|l| l + random(&mut self.seed)).collect();
        best(&noisy) as u32
    }

    pub fn forward(&mut self, ids: &[u32]) -> u32 {
        self.embed(ids);
        for layer in 0..LAYERS {
            self.attention(layer);
            self.experts(layer, self.router(layer));
        }
        let logits = self.head();
        self.sample(&logits)
    }
}
