// A model of the environment of a communicator's epochs: each event that may come next, and what must hold after it.
#pragma once

#include "runtime/epochs/epoch_change.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace ringmaster::epoch_tests {

/// How often each event may still happen.
struct budget {
  uint32_t losses = 2;
  uint32_t calls = 1; ///< After the first.
  uint32_t broken = 0;
  uint32_t overdue = 0;
  uint32_t aborts = 0;
  uint32_t destroys = 0;
  uint32_t spares = 0;   ///< That are given.
  uint32_t refusals = 0; ///< Of spares: none is free, or the coordinator does not answer.
  bool joint = false;    ///< Operations are joint ones.
  uint32_t leaves = 0;   ///< Members that are asked to leave.
};

/// A communicator's epochs with everything around them: devices that fall silent and are noticed later, streams that
/// stop and report, a coordinator that gives spares or none.
class epoch_world {
public:
  struct event {
    enum class kind {
      fall,
      notice,
      quiesced,
      finish,
      commit,
      break_off,
      call,
      overdue,
      abort,
      destroy,
      spare,
      bare_spare,
      dead_spare,
      no_spare,
      no_answer,
      move,
      moved,
      leave,
      let_leave
    };
    kind what;
    device_id device = {};
    sequence_number sequence = {};
    epoch_number epoch = {};
  };

  epoch_world(uint32_t ranks, proto::FailurePolicy policy, const budget& limits);

  std::vector<event> possible() const;
  void apply(const event& x);

  /// When no live member or client has anything left to do, all waiting clients have been answered.
  void check_rest();

  /// A hash of everything that later events depend on.
  uint64_t fingerprint() const;

private:
  /// A device with its stream.
  struct stream {
    bool alive = true;
    bool noticed = false;
    std::set<epoch_number> answers;                ///< Whose Quiesced is under way.
    std::map<sequence_number, epoch_number> walks; ///< What it runs, and the epoch of the plan.
    std::set<sequence_number> commits;             ///< Operations whose results it is to put in place.
    epoch_number stopped_at{1};
  };

  bool is_there(device_id id) const { return epochs_.members().contains(id); }
  /// Whether the monitor of this device would tell the communicator.
  bool is_known(device_id id) const { return id.value < 10 || given_.count(id) != 0; }

  sequence_number first_running() const;
  void begin(operation& op);
  void give_spare(bool restored, bool alive);
  void take(epoch_change::decisions decisions);
  void check(epoch_change::stop_streams& x);
  void check(epoch_change::release_operation& x);
  void check(epoch_change::outputs_changed&);
  void check(epoch_change::operation_ended& x);
  void check(epoch_change::spare_wanted& x);
  void check(epoch_change::epoch_opened& x);
  void check(epoch_change::members_left& x);
  void check(epoch_change::end_began& x);
  void check(epoch_change::communicator_aborted&);
  void check(epoch_change::communicator_gone&);
  void check(epoch_change::verdict_given& x);

  /// The number of reports so far.
  size_t said() const;

  /// Messages of an older epoch, and second ones, change nothing.
  void check_ghosts();
  void expect(bool holds, const char* what) const;
  std::string path() const;

  epoch_change epochs_;
  proto::FailurePolicy policy_;
  budget left_;
  std::map<device_id, stream> streams_;
  std::set<device_id> lost_, given_, asked_to_leave_, left_for_good_;
  std::set<sequence_number> decided_, ended_;
  device_id asked_for_; ///< A spare, for this lost device.
  uint64_t next_spare_;
  epoch_number stopped_{1};
  sequence_number moving_;
  uint32_t calls_ = 0;
  uint64_t verdicts_ = 0; ///< The number of the latest.
  bool ending_ = false, destroyed_ = false, gone_ = false;
  std::vector<event> path_; ///< The events so far.
};

} // namespace ringmaster::epoch_tests
