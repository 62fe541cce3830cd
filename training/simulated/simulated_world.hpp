#pragma once

#include "training/simulated/run_queue.hpp"
#include "training/simulated/simulator.hpp"

#include <deque>
#include <unordered_map>

namespace ringmaster::training {

/// What a stream of one rank has sent the same one of another, in order.
struct inbox {
  struct message {
    value_tag what;
    double at = 0; ///< From when it can be received.
  };

  uint32_t sender;
  value_kind kind;
  bool aside;
  std::deque<message> sent;
};

/// A group's next collective, on one of its ranks' streams.
struct meeting_key {
  group among;
  bool aside = false;
  friend bool operator==(const meeting_key&, const meeting_key&) = default;
};

/// A group's ranks that have come to its next collective, by their index.
struct meeting {
  std::vector<pending*> ranks;
  uint32_t count = 0;
  pending* earliest = nullptr; ///< Of those here.
};

/// A rank's second stream has its own clock, and does its operations one after the other. What every operation needs
/// comes first, and fills a line of the cache: a thousand ranks come by between two operations of one.
struct alignas(64) rank_clock {
  double now = 0;
  double aside = 0;
  double link = 0; ///< Until when a collective of either stream has it.
  uint64_t held = 0;
  pending* waits = nullptr; ///< What its strategy waits for: a receive, a collective, or something aside.
  std::vector<std::pair<meeting_key, meeting*>> meetings; ///< The first few that it has come to.
  std::vector<inbox> inboxes;                             ///< There are few, so they are searched in turn.
  std::deque<pending*> beside;                            ///< Begun on the second stream and not ended.

  std::deque<inbox::message>& inbox_of(uint32_t sender, value_kind kind, bool of_second);
};

/// What ranks have finished of a layer, as ranks mostly end in order: some parts of it, one behind the other.
struct finished_parts {
  form cut = form::whole;    ///< Of the weights: what their tensor shards are.
  uint32_t tensor_count = 1; ///< The number of tensor shards, each of `count` parts.
  uint32_t count = 1;
  range parts; ///< Counted through all tensor shards.
};

/// The executor in virtual time: all ranks' operations, as far as they can go.
class simulated_world final : public executor {
public:
  simulated_world(const model& trained, uint32_t world_size, const cost_model& costs, bool with_events,
                  uint64_t operations_max, const training_watch& watch);

  /// Once.
  caf::expected<training_outcome> run(const strategy_function& program);

  bool begin(pending& x) override;
  bool await(pending& x) override;
  void fail(uint32_t, caf::error why) override {
    if (!error_)
      error_ = std::move(why);
  }
  bool failed() const override { return static_cast<bool>(error_); }
  void release(uint32_t rank, uint64_t memory) noexcept override { ranks_[rank].held -= memory; }

private:
  struct key_hash {
    size_t operator()(const meeting_key& x) const {
      return ((uint64_t{x.among.first} << 32 | x.among.count) * 0x9e3779b97f4a7c15 ^ x.among.stride * 2 ^ x.aside)
             * 0xff51afd7ed558ccd;
    }
  };

  uint32_t world_size() const { return static_cast<uint32_t>(ranks_.size()); }
  double& clock_of(const pending& x) { return x.aside ? ranks_[x.rank].aside : ranks_[x.rank].now; }
  /// Puts it on its stream's time line.
  void take_place(pending& x, double duration);
  void take_place(pending& x) { take_place(x, costs_.time_of(x, world_size())); }
  /// Whether the rank's main stream waits for something else.
  bool waits_elsewhere(const pending& x);
  void give_results(pending& x);
  /// Memory of the copy that an operation aside reads.
  uint64_t copied(const pending& x) const;
  /// Goes on as far as it can; whether it has ended.
  bool go(pending& x);
  void send(pending& x);
  /// How ranks are best run, from the first hop: those that share layers have met by then.
  void arrange(uint32_t hop);
  bool receive(pending& x);
  void deliver(pending& x, const inbox::message& arrived);
  meeting& meeting_of(const pending& x);
  bool meet(pending& x);
  bool hold(const meeting& all);
  /// Not in its own call of go.
  void end_later(pending& x);
  void end_aside(pending& x);
  void start_next(uint32_t rank);
  void note_finished(const pending& x);
  void close();

  // Errors: invalid_argument, with the ranks.
  caf::error left_behind() const;
  caf::error missing_result() const;
  caf::error deadlock() const;
  std::string waits_for(uint32_t rank, uint32_t& other) const;

  const model& trained_;
  const cost_model& costs_;
  bool with_events_;
  uint64_t operations_max_;
  const training_watch& watch_;
  std::vector<rank_clock> ranks_;
  std::unordered_map<meeting_key, meeting, key_hash> meetings_;
  std::vector<std::vector<finished_parts>> finished_; ///< By layer.
  run_queue ready_;
  uint32_t together_ = 0; ///< Neighbours that have met in a collective, 0 as long as none have.
  bool arranged_ = false;
  std::vector<uint32_t> restarts_; ///< Ranks whose second stream goes on.
  uint32_t latest_ = 0;            ///< The rank that began the latest operation.
  caf::error error_;
  training_outcome outcome_;
};

} // namespace ringmaster::training
