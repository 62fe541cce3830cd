#include "tests/diagnosis/hung_jobs/step_programs.hpp"

#include "messages/errc.hpp"
#include "training/simulated/simulated_world.hpp"
#include "training/strategies/strategies.hpp"

#include <doctest/doctest.h>

#include <deque>
#include <map>
#include <tuple>

namespace ringmaster::test {

namespace {

using namespace training;

constexpr uint32_t world_size = 8;

/// Passes all operations on to a simulated world and notes those that wait for other ranks.
class recording_executor final : public executor {
public:
  recording_executor(executor& inner, const model& trained) : inner_(inner), model_(trained) {
    result.ranks.resize(world_size);
  }

  bool begin(pending& x) override {
    if (needs_others(x))
      note(x);
    return inner_.begin(x);
  }
  bool await(pending& x) override { return inner_.await(x); }
  void fail(uint32_t rank, caf::error why) override { inner_.fail(rank, std::move(why)); }
  bool failed() const override { return inner_.failed(); }
  void release(uint32_t rank, uint64_t memory) noexcept override { inner_.release(rank, memory); }

  uint32_t group_of(std::vector<uint32_t> members, bool aside) {
    auto [at, added] = groups_.emplace(std::pair{members, aside}, static_cast<uint32_t>(result.groups.size()));
    if (added)
      result.groups.push_back({members.size() == world_size ? (aside ? "prefetch" : "default_pg")
                                                            : (aside ? "side group" : "group of layers"),
                               std::move(members)});
    return at->second;
  }

  job_programs result;

private:
  void note(const pending& x) {
    program_call call;
    call.elements = 1024 * std::max<uint64_t>(puzzle_costs().memory_of(x.argument), 1)
                    * (x.argument.layer == 0 || x.argument.layer + 1 == model_.layers ? 3 : 1);
    if (is_collective(x.what)) {
      std::vector<uint32_t> members;
      for (uint32_t i = 0; i < x.among.count; ++i)
        members.push_back(x.among.rank(i));
      call.group = group_of(std::move(members), x.aside);
      call.name = x.what == op::all_gather       ? "_all_gather_base"
                  : x.what == op::reduce_scatter ? "_reduce_scatter_base"
                                                 : std::string{name_of(x.what)};
      if (x.what == op::broadcast)
        call.root = x.peer;
    } else {
      std::vector<uint32_t> all;
      for (uint32_t i = 0; i < world_size; ++i)
        all.push_back(i);
      call.group = group_of(std::move(all), true);
      call.what = x.what == op::send ? program_call::form::send : program_call::form::receive;
      call.name = x.what == op::send ? "send" : "recv";
      call.peer = x.peer;
    }
    result.ranks[x.rank].push_back(std::move(call));
  }

  executor& inner_;
  const model& model_;
  std::map<std::pair<std::vector<uint32_t>, bool>, uint32_t> groups_;
};

model model_of(std::string_view layout) {
  model m;
  m.layers = layout == "3d" ? 8 : 6;
  m.global_batch = 16;
  if (layout == "3d") {
    m.parallel.tp = 2;
    m.parallel.dp = 2;
  }
  return m;
}

/// A receive has the size of the send that it takes.
void size_receives(job_programs& x) {
  std::map<std::pair<uint32_t, uint32_t>, std::deque<uint64_t>> sent;
  for (uint32_t rank = 0; rank < x.ranks.size(); ++rank)
    for (auto& call : x.ranks[rank])
      if (call.what == program_call::form::send)
        sent[{rank, call.peer}].push_back(call.elements);
  for (uint32_t rank = 0; rank < x.ranks.size(); ++rank)
    for (auto& call : x.ranks[rank])
      if (call.what == program_call::form::receive) {
        auto& waiting = sent[{call.peer, rank}];
        REQUIRE(!waiting.empty());
        call.elements = waiting.front();
        waiting.pop_front();
      }
}

} // namespace

std::vector<std::string_view> layout_names() {
  return {"ddp", "fsdp", "3d", "experts"};
}

job_programs programs_of(std::string_view layout) {
  const std::map<std::string_view, std::string_view> names{
    {"ddp", "ddp"}, {"fsdp", "fsdp"}, {"3d", "3d"}, {"experts", "expert"}};
  auto* strategy = strategy_of(names.at(layout));
  REQUIRE_MESSAGE(strategy != nullptr, layout);
  auto m = model_of(layout);
  if (auto problem = strategy->check != nullptr ? strategy->check(m, world_size) : caf::error{})
    FAIL(render(problem));
  const training_watch watch;
  simulated_world world{m, world_size, puzzle_costs(), false, 10'000'000, watch};
  recording_executor recorder{world, m};
  std::vector<rank> ranks;
  for (uint32_t i = 0; i < world_size; ++i)
    ranks.emplace_back(recorder, i, world_size, m);
  auto outcome = world.run([&](rank& self) { return strategy->run(ranks[self.index()], m); });
  REQUIRE_MESSAGE(outcome, render(outcome.error()));
  auto result = std::move(recorder.result);
  size_receives(result);
  std::vector<uint32_t> all, halves[2];
  for (uint32_t i = 0; i < world_size; ++i) {
    all.push_back(i);
    halves[i / (world_size / 2)].push_back(i);
  }
  auto group_named = [&](std::string name, std::vector<uint32_t> members) {
    for (uint32_t i = 0; i < result.groups.size(); ++i)
      if (result.groups[i].name == name && result.groups[i].members == members)
        return i;
    result.groups.push_back({std::move(name), std::move(members)});
    return static_cast<uint32_t>(result.groups.size() - 1);
  };
  const auto whole = group_named("default_pg", all);
  const uint32_t half[2] = {group_named("host", halves[0]), group_named("host", halves[1])};
  for (uint32_t i = 0; i < world_size; ++i) {
    auto& calls = result.ranks[i];
    calls.insert(calls.begin(), {program_call::form::collective, "broadcast", whole, 0, 0, 16, "Long"});
    calls.push_back({program_call::form::collective, "all_reduce", half[i / (world_size / 2)], 0, UINT32_MAX, 4,
                     "Float"});
    calls.push_back({program_call::form::collective, "all_reduce", whole, 0, UINT32_MAX, 1, "Double"});
  }
  return result;
}

} // namespace ringmaster::test
