#pragma once

#include "messages/ids.hpp"
#include "runtime/operations/operation.hpp"

#include <map>
#include <string>
#include <vector>

namespace ringmaster {

/// In rank order.
inline std::vector<device_id> ids_of(const std::vector<rank_device>& ranks) {
  std::vector<device_id> result;
  result.reserve(ranks.size());
  for (auto& x : ranks)
    result.push_back(x.id());
  return result;
}

/// The members of a communicator in rank order: those of now, and those of the latest epochs that were open.
class rank_history {
public:
  /// Epochs that are remembered.
  static constexpr size_t epochs_max = 64;

  /// `first` have been the ranks since this epoch.
  explicit rank_history(std::vector<rank_device> first, epoch_number since = epoch_number{1})
    : ranks_(std::move(first)) {
    open(since);
  }

  const std::vector<rank_device>& ranks() const { return ranks_; }
  /// In rank order, without ranks that wait for a spare.
  std::vector<device_id> present() const;
  /// The device has a rank and was not lost.
  bool contains(device_id device) const;
  /// `ranks().size()` if the device has no rank.
  size_t rank_of(device_id device) const;
  /// "node1:0 (device 0x3)", or "device 0x3" if it has no rank.
  std::string name_of(device_id device) const;
  /// The rank that the device had when the latest epoch opened; if it had none, its rank of now.
  size_t known_rank_of(device_id device) const;

  /// The latest epoch that was open. Calls that come while members change are for it.
  epoch_number latest_epoch() const { return by_epoch_.rbegin()->first; }
  /// nullptr: the epoch was not open, or is too old.
  const std::vector<rank_device>* in(epoch_number epoch) const;
  /// The ranks of that epoch, each marked `dropped` if its device has no rank now.
  std::vector<rank_device> in_with_dropped(epoch_number epoch) const;

  /// The rank stays and waits for a spare.
  void mark_lost(device_id device);
  /// The device keeps its rank after all.
  void mark_kept(device_id device);
  /// The ranks after the removed one move up.
  void remove(device_id device);
  void remove_lost();
  void replace(device_id lost, const gpu_sim::DeviceMetadata& spare);
  /// An epoch opens over the ranks of now.
  void open(epoch_number epoch);

private:
  std::vector<rank_device>::iterator find(device_id device);

  std::vector<rank_device> ranks_;
  std::map<epoch_number, std::vector<rank_device>> by_epoch_;
};

} // namespace ringmaster
