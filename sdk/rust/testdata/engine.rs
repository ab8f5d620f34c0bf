//! An example engine that simulates its work. Environment variables configure it; the test starts and ends it through
//! standard input.

#[path = "../llmtop.rs"]
mod llmtop;

use llmtop::{caps, stage, Emitter, Host, Kv, Model, Op, Options, Phase, Reading, Request, Shape, Step, Token, Usage};
use std::io::{BufRead, Write};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{env, io, process, thread};

#[derive(Clone, Copy)]
struct Plan {
    requests: u64,
    tokens: u32,
    threads: u64,
    steps: bool,
    pause: Duration,
}

fn number(name: &str, otherwise: u64) -> u64 {
    env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(otherwise)
}

fn pass(top: &Emitter, plan: &Plan, request: u64, index: u32) {
    let began = Instant::now();
    let number = (request - 1) * u64::from(plan.tokens) + u64::from(index) + 1;
    if !plan.steps {
        return top.token(request, index, 1000 + index); // the minimum
    }
    top.picks(Phase::Decode, 0, &[1, 3]);
    top.step(&Step {
        number,
        decode: Some(1),
        split: Some([10, 200, 30, 400, 50, 60]),
        metrics: "{\"dp_rank\":0,\n\"scheduled_requests\":{\"num_decode_requests\":1}}",
        ..Step::since(began)
    });
    top.tokens(&[Token {
        request,
        index: Some(index),
        id: Some(1000 + index),
        step: number,
        logprob: Some(-0.25),
        sampling: Some(Duration::from_nanos(60)),
        text: if index % 2 == 1 { b"\xE2\x96" } else { b" \"word\"\n" },
        ..Token::default()
    }]);
}

fn generate(top: &Emitter, plan: &Plan, request: u64) {
    let what = Request {
        group: "adapter-\"x\"",
        label: "chat",
        prompt: "Once upon a time",
        max_tokens: Some(64),
        prompt_tokens: Some(4),
        ..Request::default()
    };
    top.queued(request, &what);
    top.span(request, stage::QUEUE).end();
    top.dispatched(request);
    let mut tokenize = top.span(request, stage::TOKENIZE);
    tokenize.tokens(4);
    tokenize.end();
    let began = Instant::now();
    let mut prefill = top.span(request, stage::PREFILL);
    top.stage(request, stage::ATTENTION, Some(0), began, 4);
    top.stage(request, stage::ATTENTION, Some(1), began, 4);
    top.picks(Phase::Prompt, 1, &[0, 1, 2, 3]);
    prefill.tokens(4);
    prefill.end();
    top.kv(&Kv { used: 16, total: 4096, pinned: Some(began), ..Kv::default() });
    let mut decode = top.span(request, stage::DECODE);
    for index in 0..plan.tokens {
        pass(top, plan, request, index);
        if !plan.pause.is_zero() {
            thread::sleep(plan.pause);
        }
    }
    decode.tokens(u64::from(plan.tokens));
    decode.end();
    let usage = Usage { prompt: Some(4), cached: Some(1), generated: Some(u64::from(plan.tokens)), ..Usage::default() };
    top.finished(request, "length", &usage);
}

/// Passes that are timed while they run, and what else an engine may report.
fn passes(top: &Emitter) {
    top.queued(7999, &Request::default());
    top.finished(7999, "stop", &Usage::default());
    top.queued(8000, &Request::default());
    top.dispatched(8000);
    let ms = || thread::sleep(Duration::from_millis(1));
    let token = Token { request: 8000, index: Some(0), id: Some(7), picks: &[1, 3, 0, 2], ..Token::default() };
    {
        let s = top.step_begin(8000, None, Some(4));
        for (name, layer) in [(stage::EMBED, None), (stage::ATTENTION, Some(0)), ("rotary", None), (stage::LM_HEAD, None)] {
            let _part = s.part(name, layer);
            ms();
        }
        top.picks(Phase::Prompt, 0, &[1, 3]);
        top.picks(Phase::Prompt, 1, &[0, 2]);
        s.end();
        let sample = s.part(stage::SAMPLE, None);
        ms();
        sample.end();
        s.tokens(&[token]);
    }
    {
        let s = top.step_begin(0, Some(2), None);
        s.end();
        s.tokens(&[Token { index: Some(1), picks: &[], ..token }]);
    }
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _s = top.step_begin(8000, None, Some(4));
        panic!("the pass fails");
    }));
    std::panic::set_hook(quiet);
    assert!(failed.is_err());
    let op = |name, layer, calls, ns| Op { name, layer, calls, time: Duration::from_nanos(ns) };
    let ops = [op("MUL_MAT", Some(0), 480, 540_000), op("MUL_MAT", None, 120, 90_000), op("ROPE", Some(0), 240, 81_000)];
    top.ops(120, &ops, Some(2.5));
    let shape = Shape { drafts: true, requests: 1, tokens: 4, passes: 8, time: Duration::from_micros(960), generated: 24 };
    let plain = Shape { drafts: false, tokens: 1, passes: 5, time: Duration::from_micros(400), generated: 5, ..shape };
    top.draft(&[10, 8], &[9, 6], Duration::from_micros(800), &[shape, plain]);
    top.usage(Duration::from_micros(200), &[("run", Reading::Measured(381_000.0)), ("cores", Reading::Derived(2.0))]);
    top.host(&Host {
        interval: Duration::from_micros(100),
        cores: &[0.25, 0.75],
        readings: &[("cpu", Reading::Derived(0.5))],
        engine: &[("rss", Reading::Measured(137_438_953_472.0))],
        ..Host::default()
    });
    let usage =
        Usage { prompt: Some(4), cached: Some(2), generated: Some(2), reuse: 7999, reuse_at: 3, reuse_why: "tokens", ..Usage::default() };
    top.finished(8000, "stop", &usage);
}

fn wait_for(word: &str) {
    for line in io::stdin().lock().lines() {
        if line.map_or(true, |l| l == word) {
            return;
        }
    }
}

fn say(line: &str) {
    println!("{line}");
    io::stdout().flush().expect("standard output is open");
}

/// Requests from readers, executed by a thread of the engine.
fn controls(jobs: mpsc::Sender<Job>) -> llmtop::Controls {
    let mut next = 100;
    let (cancels, sender) = (jobs.clone(), jobs);
    llmtop::Controls {
        generate: Some(Box::new(move |generation| {
            next += 1;
            sender.send(Job::Generate(next, Box::new(generation))).map_err(|e| e.to_string())?;
            Ok(next)
        })),
        cancel: Some(Box::new(move |request| match request {
            9000 => cancels.send(Job::Cancel(request)).map_err(|e| e.to_string()),
            _ => Err(format!("no request {request}")),
        })),
        pause: Some(Box::new(|on| {
            say(if on { "paused" } else { "resumed" });
            Ok(())
        })),
        hooks: Some(Box::new(|on| {
            say(&format!("{on:?}"));
            Ok(())
        })),
        sample: Some(Box::new(|every| if every > 100 { panic!("every {every}") } else { Ok(()) })),
    }
}

enum Job {
    Generate(u64, Box<llmtop::Generation>),
    Cancel(u64),
}

fn work(top: &Emitter, job: Job) {
    let (request, generation) = match job {
        Job::Generate(request, generation) => (request, generation),
        Job::Cancel(request) => return top.cancelled(request, &Usage::default()),
    };
    let prompt = generation.prompt.unwrap_or_default();
    let label = generation.label.unwrap_or_default();
    top.queued(request, &Request { label: &label, prompt: &prompt, text: generation.text, ..Request::default() });
    top.dispatched(request);
    let count = generation.max_tokens.unwrap_or(4);
    for (index, word) in prompt.split_whitespace().cycle().take(count as usize).enumerate() {
        top.picks(Phase::Decode, 0, &[2]);
        top.tokens(&[Token {
            request,
            index: Some(index as u32),
            id: Some(7),
            text: word.as_bytes(),
            top: if generation.top > 0 { &[(7, -0.5), (8, -1.5)] } else { &[] },
            picks: if generation.picks { &[2, 0] } else { &[] },
            ..Token::default()
        }]);
    }
    top.finished(request, "length", &Usage { generated: Some(count), ..Usage::default() });
}

/// A tokenizer that encodes a text piece by piece and looks up each piece in its cache.
fn tokenize(top: &Emitter) {
    for (i, piece) in ["Once", " upon", " a", " time"].iter().enumerate() {
        let mut encode = if i == 0 { top.encode_stream_start(9001) } else { top.encode_stream_next(9001) };
        let mut lookup = top.cache_lookup(9001);
        lookup.hit(i != 1);
        lookup.end();
        encode.tokens(piece.len() as u64);
    }
    let [start, next, lookup] =
        [stage::ENCODE_STREAM_START, stage::ENCODE_STREAM_NEXT, stage::CACHE_LOOKUP].map(|name| top.stats(name).expect("it has spans"));
    say(&format!("{} {} {} {} {:?}", start.count, next.count, next.tokens, lookup.count, lookup.hit_ratio()));
}

/// Events that an engine emits rarely.
fn rarities(top: &Emitter) {
    let began = Instant::now();
    top.state("loading", "another \"model\"\n");
    top.loaded(
        &Model { name: "other".into(), layers: 1, experts: 2, experts_used: 1, parameters: 7_000_000_000, ..Model::default() },
        Some(began),
    );
    top.state("ready", "");
    top.picks(Phase::Decode, 0, &[1]);
    let gpu = [("util", Reading::Reported(0.5)), ("power", Reading::NotPermitted)];
    top.host(&Host {
        interval: Duration::from_millis(500),
        cores: &[0.25, 1.0],
        readings: &[("cpu", Reading::Measured(0.5)), ("load1", Reading::Derived(1.5)), ("hz", Reading::NotYet)],
        engine: &[("rss", Reading::Measured(1e9))],
        gpus: &[("\"X\" 1", &gpu)],
        ..Host::default()
    });
    top.kv(&Kv { used: 1, total: 2, page: 16, pinned: Some(began), freed: Some(3), held: Some(Duration::from_millis(4)) });
    top.counter("queue_depth").set(1.5);
    top.queued(9002, &Request { name: "id-é", max_tokens: Some(1), cold: true, probe: true, ..Request::default() });
    top.failed(9002, "out of memory", &Usage { prompt: Some(9), pad: Some(2), ..Usage::default() });
}

fn options(jobs: mpsc::Sender<Job>) -> Options {
    let mut options = Options::new("example-rust");
    options.version = "1.2".into();
    options.address = env::var("ADDRESS").ok();
    options.token = env::var("TOKEN").ok();
    options.caps = caps::STAGES | caps::TOKENS | caps::EXPERTS | caps::KV | caps::STEPS | caps::QUEUE;
    options.slots = 4;
    options.device = Some(llmtop::Device { name: "CPU".into(), kernels: "AVX2".into(), host: true, threads: 2 });
    let (layers, experts) = (number("LAYERS", 2), number("EXPERTS", 4));
    options.model = Some(Model { name: "tiny".into(), layers, experts, experts_used: 2, ..Model::default() });
    options.text = number("TEXT", 0) != 0;
    options.csv = env::var_os("CSV").is_some();
    options.ring = number("RING", options.ring as u64) as usize;
    options.backlog = number("BACKLOG", options.backlog as u64) as usize;
    if number("CONTROL", 0) != 0 {
        options.controls = controls(jobs);
    }
    options
}

fn main() {
    let plan = Plan {
        requests: number("REQUESTS", 3),
        tokens: number("TOKENS", 5) as u32,
        threads: number("THREADS", 1),
        steps: number("STEPS", 1) != 0,
        pause: Duration::from_micros(number("PAUSE_US", 0)),
    };
    let (sender, jobs) = mpsc::channel();
    let top = Emitter::open(options(sender)).unwrap_or_else(|e| {
        eprintln!("{e}");
        process::exit(1);
    });
    say(top.address());
    if number("HELD", 0) != 0 {
        // a live request in the state for late joiners
        top.queued(9000, &Request::default());
        top.dispatched(9000);
        (0..10).for_each(|i| top.token(9000, i, i));
    }
    let worker = top.clone();
    thread::spawn(move || jobs.iter().for_each(|job| work(&worker, job)));
    if number("SAMPLED", 0) != 0 {
        top.sample_host();
    }
    wait_for("go");
    if number("PASSES", 0) != 0 {
        passes(&top);
    }
    thread::scope(|s| {
        for first in 1..=plan.threads {
            let top = &top;
            s.spawn(move || (first..=plan.requests).step_by(plan.threads as usize).for_each(|request| generate(top, &plan, request)));
        }
    });
    if number("TOKENIZER", 0) != 0 {
        tokenize(&top);
    }
    if number("RARITIES", 0) != 0 {
        rarities(&top);
    }
    top.log("all is done\n");
    if let Some(path) = env::var_os("CSV") {
        let flushed = top.csv(path).expect("the file can be written");
        say(&format!("rows {} missing {}", flushed.rows, flushed.missing));
    }
    say("done");
    wait_for("end");
    top.close();
}
