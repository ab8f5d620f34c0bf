// An example engine in C++ that simulates its work. The test starts and ends it through standard input.
#define LLMTOP_IMPLEMENTATION
#include "llmtop.h"

#include "engine.h"

#include <array>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Plan {
  long requests = number("REQUESTS", 3), tokens = number("TOKENS", 5), threads = number("THREADS", 1);
  long steps = number("STEPS", 1), pause_us = number("PAUSE_US", 0);
};

void pass(llmtop_socket *top, const Plan &plan, std::uint64_t request, std::int32_t index) {
  static constexpr std::array<std::uint32_t, 6> split{10, 200, 30, 400, 50, 60};
  static constexpr std::array<std::uint16_t, 2> picks{1, 3};
  if (plan.steps == 0) { // the minimum
    llmtop_token(top, request, index, 1000 + index);
    return;
  }
  llmtop_picks(top, 1, 0, picks.data(), picks.size());
  llmtop_pass step{};
  step.began = llmtop_now(top);
  step.number = (request - 1) * static_cast<std::uint64_t>(plan.tokens) + static_cast<std::uint64_t>(index) + 1;
  step.decode = 1;
  step.split = split.data();
  step.metrics = "{\"dp_rank\":0,\n\"scheduled_requests\":{\"num_decode_requests\":1}}";
  llmtop_step(top, &step);
  const std::string text = index % 2 ? "\xE2\x96" : " \"word\"\n";
  llmtop_tokens_info token = LLMTOP_TOKENS(request);
  token.index = index;
  token.id = 1000 + index;
  token.step = step.number;
  token.logprob = -0.25F;
  token.sampling = 60;
  token.text = text.c_str();
  token.length = text.size();
  llmtop_tokens(top, &token);
}

void prefill(llmtop_socket *top, std::uint64_t request) {
  static constexpr std::array<std::uint16_t, 4> picks{0, 1, 2, 3};
  llmtop::Span whole(top, request, LLMTOP_PREFILL, 4);
  const std::int64_t began = llmtop_now(top);
  llmtop_stage(top, request, LLMTOP_ATTENTION, 0, began, 4);
  llmtop_stage(top, request, LLMTOP_ATTENTION, 1, began, 4);
  llmtop_picks(top, 0, 1, picks.data(), picks.size());
}

void generate(llmtop_socket *top, const Plan &plan, std::uint64_t request) {
  llmtop_request what{};
  what.group = "adapter-\"x\"";
  what.label = "chat";
  what.prompt = "Once upon a time";
  what.max_tokens = 64;
  what.prompt_tokens = 4;
  llmtop_queued(top, request, &what);
  llmtop::Span queue(top, request, LLMTOP_QUEUE);
  llmtop::Span moved(std::move(queue)); // to the thread that dispatches
  moved.end();
  llmtop_dispatched(top, request);
  {
    llmtop::Span encode(top, request, LLMTOP_TOKENIZE);
    encode.tokens(4);
  }
  prefill(top, request);
  const llmtop_cells cells = LLMTOP_CELLS(16, 4096);
  llmtop_kv(top, &cells);
  {
    llmtop::Span decode(top, request, LLMTOP_DECODE, plan.tokens);
    for (std::int32_t i = 0; i < plan.tokens; i++) {
      pass(top, plan, request, i);
      if (plan.pause_us > 0) rest(plan.pause_us);
    }
  }
  llmtop_usage usage = LLMTOP_USAGE;
  usage.in = 4;
  usage.cached = 1;
  usage.out = plan.tokens;
  llmtop_ended(top, request, LLMTOP_FINISHED, "length", &usage);
}

void passes(llmtop_socket *top) { // timed while they run, and what else an engine may report
  static constexpr std::array<std::uint16_t, 4> picks{1, 3, 0, 2};
  llmtop_queued(top, 7999, nullptr);
  llmtop_ended(top, 7999, LLMTOP_FINISHED, "stop", nullptr);
  llmtop_queued(top, 8000, nullptr);
  llmtop_dispatched(top, 8000);
  llmtop_tokens_info token = LLMTOP_TOKENS(8000);
  token.index = 0;
  token.id = 7;
  token.picks = picks.data();
  token.pick_count = picks.size();
  {
    llmtop::Step step(top, 8000, -1, 4);
    for (const char *name : {LLMTOP_EMBED, LLMTOP_ATTENTION, "rotary", LLMTOP_LM_HEAD}) {
      llmtop::Step::Part part(step, name, strcmp(name, LLMTOP_ATTENTION) == 0 ? 0 : -1);
      rest(1000);
    }
    llmtop_picks(top, 0, 0, picks.data(), 2);
    llmtop_picks(top, 0, 1, picks.data() + 2, 2);
    step.end();
    {
      llmtop::Step::Part sample(step, LLMTOP_SAMPLE);
      rest(1000);
    }
    step.tokens(token);
  }
  {
    llmtop::Step step(top, 0, 2, -1);
    step.end();
    token.index = 1;
    token.picks = nullptr;
    step.tokens(token);
  }
  try {
    llmtop::Step step(top, 8000, -1, 4);
    throw std::string("the pass fails");
  } catch (const std::string &) {
  }
  const std::array<llmtop_op, 3> ops{{{"MUL_MAT", 0, 480, 540000}, {"MUL_MAT", -1, 120, 90000}, {"ROPE", 0, 240, 81000}}};
  llmtop_ops(top, 120, ops.data(), ops.size(), 2.5);
  const std::array<std::int64_t, 2> drafted{10, 8}, accepted{9, 6};
  const std::array<llmtop_shape, 2> shapes{{{1, 1, 4, 8, 960000, 24}, {0, 1, 1, 5, 400000, 5}}};
  llmtop_draft(top, drafted.data(), accepted.data(), 2, 800000, shapes.data(), shapes.size());
  const std::array<llmtop_reading, 2> used{{{"run", 381000, 0}, {"cores", 2, 1}}};
  llmtop_report_usage(top, 200000, used.data(), used.size());
  const std::array<double, 2> cores{0.25, 0.75};
  const llmtop_reading machine{"cpu", 0.5, 1}, process{"rss", 137438953472.0, 0};
  llmtop_host(top, 100000, cores.data(), cores.size(), &machine, 1, &process, 1);
  llmtop_usage usage = LLMTOP_USAGE;
  usage.in = 4;
  usage.cached = 2;
  usage.out = 2;
  usage.reuse = 7999;
  usage.reuse_at = 3;
  usage.reuse_why = "tokens";
  llmtop_ended(top, 8000, LLMTOP_FINISHED, "stop", &usage);
}

void hold(llmtop_socket *top) { // a live request in the state for late joiners
  llmtop_queued(top, 9000, nullptr);
  llmtop_dispatched(top, 9000);
  for (std::int32_t i = 0; i < 10; i++) llmtop_token(top, 9000, i, i);
}

void run(llmtop_socket *top, const Plan &plan) {
  std::vector<std::thread> threads;
  for (long i = 1; i <= plan.threads; i++) {
    threads.emplace_back([=] {
      for (long r = i; r <= plan.requests; r += plan.threads) generate(top, plan, static_cast<std::uint64_t>(r));
    });
  }
  for (auto &t : threads) t.join();
  llmtop_log(top, "all is done\n");
}

} // namespace

int main() {
  llmtop_model model{};
  model.name = "tiny";
  model.layers = number("LAYERS", 2);
  model.experts = number("EXPERTS", 4);
  model.experts_used = 2;
  llmtop_options options{};
  options.name = "example-cc";
  options.version = "1.2";
  options.address = std::getenv("ADDRESS");
  options.caps = LLMTOP_CAN_STAGES | LLMTOP_CAN_TOKENS | LLMTOP_CAN_EXPERTS | LLMTOP_CAN_KV | LLMTOP_CAN_STEPS | LLMTOP_CAN_QUEUE;
  options.model = &model;
  options.text = number("TEXT", 0) != 0;
  options.csv = std::getenv("CSV") != nullptr;
  options.ring = static_cast<unsigned>(number("RING", 0));
  options.backlog = static_cast<unsigned>(number("BACKLOG", 0));
  llmtop::Socket socket(options);
  if (socket.get() == nullptr) {
    std::fprintf(stderr, "%s\n", socket.error().c_str());
    return 1;
  }
  std::printf("%s\n", llmtop_address(socket.get()));
  std::fflush(stdout);
  if (number("HELD", 0) != 0) hold(socket.get());
  if (number("SAMPLED", 0) != 0) llmtop_sample_host(socket.get());
  await("go");
  if (number("PASSES", 0) != 0) passes(socket.get());
  run(socket.get(), Plan());
  if (options.csv) {
    std::uint64_t missing = 0;
    const long rows = llmtop_csv(socket.get(), std::getenv("CSV"), &missing);
    std::printf("rows %ld missing %llu\n", rows, static_cast<unsigned long long>(missing));
  }
  std::printf("done\n");
  std::fflush(stdout);
  await("end");
  return 0;
}
