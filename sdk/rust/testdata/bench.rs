//! Measures the cost of emitting for the emitting thread. Standard input has lines "WHAT ROUNDS"; for each it prints
//! the median of the ns per event over the given number of rounds, and how many events were dropped from the ring. A
//! round is short enough for the ring; between rounds the writer has time to read it.

#[path = "../llmtop.rs"]
mod llmtop;

use llmtop::{stage, Emitter, Kind, Model, Options, Phase, Request, Step, Token, Usage};
use std::io::{self, BufRead, Write};
use std::sync::Barrier;
use std::time::{Duration, Instant};
use std::{env, hint, thread};

const ROUND: u32 = 2000;
const REST: Duration = Duration::from_millis(15);

/// Emits an event of a kind, or does the work without llmtop ("nothing").
fn emit(top: &Emitter, what: &str, i: u32) {
    match what {
        "nothing" => drop(hint::black_box(Instant::now())),
        "token" => top.token(7, i, 1510),
        "rich" => top.tokens(&[Token { request: 7, index: Some(i), id: Some(1510), step: 9, logprob: Some(-0.25), ..Token::default() }]),
        "span" => top.span(7, stage::PREFILL).end(),
        "encode_stream_next" => top.encode_stream_next(7).end(),
        "cache_lookup" => {
            let mut lookup = top.cache_lookup(7);
            lookup.hit(i % 4 != 0);
        }
        "step" => top.step(&Step { number: 9, decode: Some(4), split: Some([1; 6]), ..Step::since(Instant::now()) }),
        "picks" => top.picks(Phase::Decode, i as usize % 16, &[1, 5, 9, 33, 40, 41, 60, 63]),
        _ => panic!("no such event: {what}"),
    }
}

/// Times rounds of an event; "batch" is 64 tokens in one call, "threads" is tokens of four concurrent threads.
fn round(top: &Emitter, what: &str) -> f64 {
    let began = Instant::now();
    match what {
        "batch" => {
            let batch: Vec<Token> = (0..64).map(|r| Token { request: r + 1, index: Some(3), id: Some(5), ..Token::default() }).collect();
            (0..ROUND / 64).for_each(|_| top.tokens(&batch));
            return began.elapsed().as_nanos() as f64 / f64::from(ROUND / 64 * 64);
        }
        "threads" => return threads(top),
        _ => (0..ROUND).for_each(|i| emit(top, what, i)),
    }
    began.elapsed().as_nanos() as f64 / f64::from(ROUND)
}

/// ns per event and thread.
fn threads(top: &Emitter) -> f64 {
    let start = Barrier::new(4);
    thread::scope(|s| {
        let run = || {
            start.wait();
            let began = Instant::now();
            (0..ROUND).for_each(|i| top.token(7, i, 1510));
            began.elapsed().as_nanos() as f64 / f64::from(ROUND)
        };
        let all: Vec<_> = (0..4).map(|_| s.spawn(run)).collect();
        all.into_iter().map(|t| t.join().expect("it does not panic")).sum::<f64>() / 4.0
    })
}

fn main() {
    let mut options = Options::new("bench");
    options.address = env::var("ADDRESS").ok();
    options.model = Some(Model { layers: 16, experts: 64, experts_used: 8, ..Model::default() });
    let top = Emitter::open(options).expect("the socket can be opened");
    println!("{}", top.address());
    top.queued(7, &Request::default());
    for line in io::stdin().lock().lines() {
        let line = line.expect("standard input is text");
        let Some((what, rounds)) = line.split_once(' ') else { break };
        let kinds = [Kind::Token, Kind::Stage, Kind::Step];
        let dropped = || kinds.iter().map(|&k| top.dropped(k)).sum::<u64>();
        let before = dropped();
        let mut costs: Vec<f64> = (0..rounds.parse().expect("a number"))
            .map(|_| {
                thread::sleep(REST);
                round(&top, what)
            })
            .collect();
        costs.sort_by(f64::total_cmp);
        println!("{:.1} {}", costs[costs.len() / 2], dropped() - before);
        io::stdout().flush().expect("standard output is open");
    }
    top.finished(7, "stop", &Usage::default());
}
