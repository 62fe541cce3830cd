#pragma once

#include "messages/ids.hpp"
#include "runtime/invariants/ensure.hpp"
#include "training/computed/kept_values.hpp"
#include "training/computed/step_world.hpp"

#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace ringmaster::training {

/// The ranks of a run: which of them are ready, which run the step, which parts of the model each has, and which
/// devices take part no more. Pure. Belongs to a `step_change`.
class rank_roster {
public:
  struct member {
    device_id device;
    uint32_t place = 0;     ///< Ranks of a step are in the order of their places.
    bool connected = false; ///< Its rank actor is known.
    bool ready = false;
    bool leaves = false;           ///< After this step, when others have its parts of the model.
    std::vector<kept_part> made{}; ///< Its parts of the model as it is before the step.
  };

  /// `wanted`: the number of ranks that the run starts with, and is filled up to. `starts_ranks`: the trainer starts
  /// ranks; false: processes report theirs.
  rank_roster(std::shared_ptr<const training_job> job, uint32_t wanted, bool starts_ranks);

  const std::vector<member>& members() const { return members_; }
  /// The ranks of the step, by rank.
  std::span<const member> world() const { return std::span{members_}.first(world_); }
  uint32_t world_size() const { return world_; }
  const step_setting& sides() const { return sides_; }
  uint32_t wanted() const { return wanted_; }
  /// Null: the device has no rank.
  const member* find(device_id device) const;
  bool is_in_world(device_id device) const;
  bool is_lost(device_id device) const { return lost_.contains(device); }
  size_t lost_count() const { return lost_.size(); }
  /// Whether a rank of this device may report that it is ready.
  bool expects(device_id device) const { return find(device) != nullptr || (!starts_ranks_ && !is_lost(device)); }
  /// Whether ranks may come in place of those that are lost.
  bool others_may_come() const { return starts_ranks_ || may_return_ > 0; }
  /// Processes that lost their device and are not known to have exited: they may come back with another one.
  uint32_t may_return() const { return may_return_; }
  uint32_t ready_count() const;
  bool all_are_ready() const;
  bool some_leave() const;
  /// The ranks that can run a step of those that are ready; 0 ranks: no such world fits in their memory.
  step_world possible_world() const;

  /// At the first free place: the place of a lost rank has parts that are needed again.
  const member& add(device_id device);
  /// A rank of a process that reports by itself. It replaces a rank at its place that has not become ready.
  void add_at(device_id device, uint32_t place);
  void set_connected(device_id device) { get(device).connected = true; }
  void set_ready(device_id device);
  void set_leaves(device_id device, bool leaves) { get(device).leaves = leaves; }
  /// The device takes part no more. `may_return`: its process may come back with another device.
  void lose(device_id device, bool may_return);
  /// The device has no rank for now; its process is late, or has exited.
  void remove_unconnected(device_id device);
  /// `for_good`: their devices take part no more.
  std::vector<device_id> remove_leaving(bool for_good);
  /// The ranks of the current step had not enough memory for it.
  void mark_too_small() { too_small_.push_back({world_, sides_}); }
  /// Chooses the ranks of the step; they become the first members. `keep_order`: communicators over the ranks of the
  /// last step are open. Returns a sentence for the user if the choice differs from the last one, else nothing.
  std::string choose_world(uint64_t step, bool keep_order);
  /// The step counts: `made` has, by rank, the parts of the model before the next step.
  void commit(std::vector<std::vector<kept_part>> made);
  /// The rank has lost its parts of the model.
  void forget_parts(device_id device) { get(device).made.clear(); }
  void forget_all_parts();

  /// For the log of a broken invariant.
  std::string state_text() const;

private:
  void ensure(bool holds, std::string_view what,
              const std::source_location& where = std::source_location::current()) const {
    ensure_of(*this, holds, what, where);
  }
  member& get(device_id device);
  void erase(device_id device);
  std::string describe_change(uint64_t step, const step_setting& before) const;

  std::shared_ptr<const training_job> job_;
  uint32_t wanted_;
  bool starts_ranks_;
  std::vector<member> members_; ///< The first `world_` are the ranks of the step.
  uint32_t world_ = 0;
  step_setting sides_;       ///< Of the step.
  uint32_t idle_ = 0;        ///< Ranks that are ready and that the step cannot use.
  std::set<device_id> lost_; ///< Devices that take part no more.
  uint32_t may_return_ = 0;
  std::vector<step_world> too_small_; ///< Worlds whose ranks had not enough memory for a step.
};

} // namespace ringmaster::training
