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
  const llmtop_usage usage{4, 1, plan.tokens, -1};
  llmtop_ended(top, request, LLMTOP_FINISHED, "length", &usage);
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
  await("go");
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
