#include "runtime/training/simulator.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

namespace ringmaster::training {

namespace {

struct message {
  value_tag what;
  double at = 0; ///< From when it can be received.
};

/// What one rank has sent another; there are few, so they are searched in turn.
struct inbox {
  uint32_t sender;
  value_kind kind;
  std::deque<message> sent;
};

struct rank_state {
  double clock = 0;
  uint64_t held = 0;
  pending* waits = nullptr; ///< A receive or a collective.
  std::vector<inbox> inboxes;

  std::deque<message>& inbox_of(uint32_t sender, value_kind kind) {
    for (auto& x : inboxes)
      if (x.sender == sender && x.kind == kind)
        return x.sent;
    return inboxes.emplace_back(inbox{sender, kind, {}}).sent;
  }
};

/// Whether an operation shows up in the time line.
bool is_event(op x) {
  return x != op::input && x != op::add && x != op::slice && x != op::finish;
}

bool is_communication(op x) {
  return is_collective(x) || x == op::send || x == op::receive;
}

class simulator final : public executor {
public:
  simulator(const model& trained, uint32_t world_size, const cost_model& costs, bool with_events)
    : trained_(trained), costs_(costs), with_events_(with_events), states_(world_size), finished_(trained.layers) {
    outcome_.ranks.resize(world_size);
  }

  caf::expected<training_outcome> run(const strategy_function& program);

  bool begin(pending& x) override;
  void fail(uint32_t, std::string why) override {
    if (error_.empty())
      error_ = std::move(why);
  }
  void release(uint32_t rank, uint64_t memory) noexcept override { states_[rank].held -= memory; }

private:
  uint32_t world_size() const { return static_cast<uint32_t>(states_.size()); }
  void show(const pending& x, double duration);
  void take_place(pending& x);
  void give_results(pending& x);
  void send(pending& x);
  bool receive(pending& x);
  void deliver(pending& x, const message& arrived);
  bool meet(pending& x);
  /// What all ranks' arguments come to, for each of them.
  bool combine();
  bool sum(value_tag& total);
  bool gather(value_tag& whole);
  void note_finished(const pending& x);
  std::string left_behind() const;
  std::string missing_result() const;
  std::string deadlock() const;
  std::string waits_for(uint32_t rank, uint32_t& other) const;

  const model& trained_;
  const cost_model& costs_;
  bool with_events_;
  std::vector<rank_state> states_;
  std::vector<pending*> met_; ///< By rank, once the first has come to a collective.
  uint32_t met_count_ = 0;
  std::vector<std::map<uint32_t, std::set<uint32_t>>> finished_; ///< By layer: shards of how many.
  std::vector<std::coroutine_handle<>> ready_;
  std::string error_;
  training_outcome outcome_;
};

void simulator::show(const pending& x, double duration) {
  auto& state = states_[x.rank];
  auto& its = outcome_.ranks[x.rank];
  ++outcome_.operations;
  if (!is_event(x.what))
    return;
  its.last_start = state.clock;
  (is_communication(x.what) ? its.communication : its.compute) += duration;
  if (state.held > its.peak_memory) {
    its.peak_memory = state.held;
    its.peak_at = state.clock;
  }
  if (with_events_)
    outcome_.events.push_back({x.what, x.rank, x.peer, x.argument.layer, x.argument.samples.first(), state.clock, duration, state.held});
  state.clock += duration;
}

void simulator::give_results(pending& x) {
  for (size_t i = 0; i < x.results.size() && x.results[i].kind != value_kind::none; ++i) {
    x.memory[i] = costs_.memory_of(x.results[i]);
    states_[x.rank].held += x.memory[i];
  }
}

void simulator::take_place(pending& x) {
  show(x, costs_.time_of(x, world_size()));
  give_results(x);
}

bool simulator::begin(pending& x) {
  if (is_collective(x.what))
    return meet(x);
  if (x.what == op::receive)
    return receive(x);
  if (x.what == op::send)
    send(x);
  else
    take_place(x);
  if (x.what == op::finish)
    note_finished(x);
  return true;
}

void simulator::send(pending& x) {
  auto& clock = states_[x.rank].clock;
  auto begun = clock;
  take_place(x);
  message sent{x.argument, costs_.leaves_at_end() ? clock : begun};
  auto& receiver = states_[x.peer];
  if (receiver.waits == nullptr || receiver.waits->what != op::receive || receiver.waits->peer != x.rank
      || receiver.waits->argument.kind != x.argument.kind) {
    receiver.inbox_of(x.rank, x.argument.kind).push_back(std::move(sent));
    return;
  }
  auto& waiting = *std::exchange(receiver.waits, nullptr);
  deliver(waiting, sent);
  ready_.push_back(waiting.waiter);
}

bool simulator::receive(pending& x) {
  auto& state = states_[x.rank];
  auto& sent = state.inbox_of(x.peer, x.argument.kind);
  if (sent.empty()) {
    state.waits = &x;
    return false;
  }
  auto first = std::move(sent.front());
  sent.pop_front();
  deliver(x, first);
  return true;
}

void simulator::deliver(pending& x, const message& arrived) {
  auto& clock = states_[x.rank].clock;
  clock = std::max(clock, arrived.at);
  x.argument = x.results[0] = arrived.what;
  take_place(x);
}

bool simulator::meet(pending& x) {
  met_.resize(states_.size());
  met_[x.rank] = &x;
  states_[x.rank].waits = &x;
  auto& first = **std::find_if(met_.begin(), met_.end(), [](auto* y) { return y != nullptr; });
  if (first.what != x.what || first.argument.layer != x.argument.layer) {
    fail(x.rank, fmt::format("the ranks' collectives do not match: rank {} calls {} of the {}, rank {} {} of the {}",
                             first.rank, name_of(first.what), text_of(first.argument), x.rank, name_of(x.what),
                             text_of(x.argument)));
    return false;
  }
  if (++met_count_ < world_size())
    return false;
  auto good = combine();
  auto all = std::exchange(met_, {});
  met_count_ = 0;
  for (auto* each : all) {
    states_[each->rank].waits = nullptr;
    if (good && each != &x)
      ready_.push_back(each->waiter);
  }
  return good;
}

bool simulator::combine() {
  value_tag result = met_.front()->argument;
  if (result.kind == value_kind::weight ? !gather(result) : !sum(result))
    return false;
  double latest = 0;
  for (auto* each : met_)
    latest = std::max(latest, states_[each->rank].clock);
  const auto duration = costs_.time_of(*met_.front(), world_size());
  for (auto* each : met_) {
    states_[each->rank].clock = latest;
    each->results[0] = result;
    if (each->what == op::reduce_scatter)
      each->results[0].part = {each->rank, world_size()};
    show(*each, duration);
    give_results(*each);
  }
  return true;
}

bool simulator::sum(value_tag& total) {
  for (size_t i = 1; i < met_.size(); ++i) {
    auto& x = met_[i]->argument;
    if (x.part != total.part) {
      fail(met_[i]->rank, fmt::format("rank {}, {}: it has the {}, rank 0 the {}", met_[i]->rank, name_of(met_[i]->what),
                                      text_of(x), text_of(total)));
      return false;
    }
    if (!total.samples.add(x.samples)) {
      fail(met_[i]->rank, fmt::format("rank {}, {}: the {} would count twice: the ranks before it have samples {}",
                                      met_[i]->rank, name_of(met_[i]->what), text_of(x), total.samples.text()));
      return false;
    }
  }
  return true;
}

bool simulator::gather(value_tag& whole) {
  std::vector<bool> there(whole.part.count);
  for (auto* each : met_) {
    auto& x = each->argument;
    if (x.part.count != whole.part.count || x.step != whole.step || there[x.part.index]) {
      fail(each->rank, fmt::format("rank {}, all_gather: the {} does not go with the {} of rank 0", each->rank, text_of(x),
                                   text_of(whole)));
      return false;
    }
    there[x.part.index] = true;
  }
  if (std::find(there.begin(), there.end(), false) != there.end()) {
    fail(0, fmt::format("all_gather of the {}: {} ranks have not all of {} shards", text_of(whole), met_.size(), there.size()));
    return false;
  }
  whole.part = {};
  return true;
}

void simulator::note_finished(const pending& x) {
  auto part = x.argument.part;
  finished_[x.argument.layer][part.count].insert(part.index);
}

std::string simulator::left_behind() const {
  for (uint32_t rank = 0; rank < world_size(); ++rank)
    for (auto& x : states_[rank].inboxes)
      if (!x.sent.empty())
        return fmt::format("rank {} has ended without receiving what rank {} sent: the {}", rank, x.sender,
                           text_of(x.sent.front().what));
  return {};
}

std::string simulator::missing_result() const {
  for (size_t layer = 0; layer < finished_.size(); ++layer) {
    bool whole = false;
    for (auto& [of, shards] : finished_[layer])
      whole = whole || shards.size() == of;
    if (!whole)
      return fmt::format("no rank has finished {}weight of layer {}: update it, and finish it", 
                         finished_[layer].empty() ? "the " : "the whole ", layer);
  }
  return {};
}

std::string simulator::waits_for(uint32_t rank, uint32_t& other) const {
  auto& x = *states_[rank].waits;
  if (x.what == op::receive) {
    other = x.peer;
    return fmt::format("rank {} waits for rank {} to send it {}", rank, other, text_of(x.argument.kind));
  }
  other = static_cast<uint32_t>(std::find(met_.begin(), met_.end(), nullptr) - met_.begin());
  return fmt::format("rank {} waits for rank {} to call {} of the {}", rank, other, name_of(x.what), text_of(x.argument));
}

std::string simulator::deadlock() const {
  auto stuck = std::find_if(states_.begin(), states_.end(), [](auto& x) { return x.waits != nullptr; });
  if (stuck == states_.end())
    return {};
  std::vector<uint32_t> chain;
  auto rank = static_cast<uint32_t>(stuck - states_.begin());
  while (states_[rank].waits != nullptr && std::find(chain.begin(), chain.end(), rank) == chain.end()) {
    chain.push_back(rank);
    waits_for(chain.back(), rank);
  }
  std::string text;
  auto from = states_[rank].waits == nullptr ? chain.begin() : std::find(chain.begin(), chain.end(), rank);
  for (auto i = from; i != chain.end(); ++i) {
    uint32_t other = 0;
    text += (text.empty() ? "" : ", ") + waits_for(*i, other);
  }
  return states_[rank].waits == nullptr ? fmt::format("{}, which has ended", text) : text + ": none of them can go on";
}

caf::expected<training_outcome> simulator::run(const strategy_function& program) {
  std::vector<rank> ranks;
  for (uint32_t i = 0; i < world_size(); ++i)
    ranks.emplace_back(*this, i, world_size(), trained_);
  {
    std::vector<strategy> bodies;
    for (auto& each : ranks)
      bodies.push_back(program(each));
    for (auto i = bodies.rbegin(); i != bodies.rend(); ++i)
      ready_.push_back(i->body());
    while (!ready_.empty() && error_.empty()) {
      auto next = ready_.back();
      ready_.pop_back();
      next.resume();
    }
    if (error_.empty())
      error_ = deadlock();
    if (error_.empty())
      error_ = left_behind();
    if (error_.empty())
      error_ = missing_result();
  }
  if (!error_.empty())
    return make_error(errc::invalid_argument, error_);
  double busy = 0, communication = 0;
  for (uint32_t i = 0; i < world_size(); ++i) {
    auto& its = outcome_.ranks[i];
    its.end = states_[i].clock;
    outcome_.time = std::max(outcome_.time, its.last_start);
    outcome_.end = std::max(outcome_.end, its.end);
    if (its.peak_memory > outcome_.ranks[outcome_.peak_rank].peak_memory)
      outcome_.peak_rank = i;
    busy += its.compute + its.communication;
    communication += its.communication;
    outcome_.memory_left += states_[i].held;
  }
  const auto whole = outcome_.end * world_size();
  outcome_.bubble_fraction = whole > 0 ? std::max(0.0, 1 - busy / whole) : 0;
  outcome_.communication_fraction = whole > 0 ? communication / whole : 0;
  return std::move(outcome_);
}

} // namespace

caf::expected<training_outcome> simulate(const strategy_function& program, const model& trained, uint32_t world_size,
                                         const cost_model& costs, bool with_events) {
  if (world_size == 0)
    return make_error(errc::invalid_argument, "a world needs at least one rank, not 0");
  return simulator{trained, world_size, costs, with_events}.run(program);
}

} // namespace ringmaster::training
