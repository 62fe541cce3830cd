#pragma once

#include "actors/training/model_snapshots.hpp"
#include "actors/training/step_exchanges.hpp"

#include <map>
#include <vector>

namespace ringmaster::training {

/// How ranks of a step get parts of the model that they lack, as ranks that have just joined do. If another rank has
/// exactly that part, it is broadcast from its memory to all ranks that want it; else the host assembles the part from
/// others, or from its snapshot. Lives in the TRAINER.
class part_deliveries {
public:
  /// `lost_parts` is called for a rank that does not have its parts.
  part_deliveries(trainer_actor::pointer self, std::shared_ptr<const training_job> job, model_snapshots& snapshots,
                  attempt_events events, std::function<void(device_id, uint64_t step)> lost_parts)
    : self_(self), job_(std::move(job)), snapshots_(snapshots), events_(std::move(events)),
      lost_parts_(std::move(lost_parts)) {}
  part_deliveries(const part_deliveries&) = delete;

  void start(std::shared_ptr<const running_step> step);
  /// Whether the model can have such a part.
  bool is_possible(const part_wanted& x) const { return training::is_possible(x.what, job_->layers.size()); }
  void deliver(const part_wanted& x);

private:
  /// The part is broadcast from this rank, to all ranks that want it when its address is known.
  void broadcast_from(uint32_t owner, const part_wanted& x);
  /// `source`: address 0 if the rank has not got it.
  void found_at(const part_wanted& x, const group_calls::place& source);
  void send_assembled(const part_wanted& x, const model_snapshots::found_parts& from);

  trainer_actor::pointer self_;
  std::shared_ptr<const training_job> job_;
  model_snapshots& snapshots_;
  attempt_events events_;
  std::function<void(device_id, uint64_t step)> lost_parts_;
  std::shared_ptr<const running_step> step_;
  std::map<kept_part, std::vector<group_calls::place>> waiting_; ///< Until the address of the source is known.
};

} // namespace ringmaster::training
