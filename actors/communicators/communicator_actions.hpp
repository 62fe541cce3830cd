#pragma once

#include "actors/communicators/communicator.hpp"

namespace ringmaster {

/// Carries out what `epoch_change` decides: what streams, devices, the coordinator, clients and the journal are sent.
struct epoch_actions {
  communicator_state& on;

  void operator()(epoch_change::stop_streams& x) const;
  void operator()(epoch_change::release_operation& x) const;
  void operator()(epoch_change::outputs_changed& x) const;
  void operator()(epoch_change::operation_ended& x) const;
  void operator()(epoch_change::spare_wanted& x) const;
  void operator()(epoch_change::epoch_opened& x) const;
  void operator()(epoch_change::members_left& x) const;
  void operator()(epoch_change::end_began& x) const;
  void operator()(epoch_change::communicator_aborted& x) const;
  void operator()(epoch_change::communicator_gone& x) const;

  /// Devices are sent the members of now, or none after the end.
  void announce_members() const;

private:
  void take_spare(const proto::SpareResponse& x, const device_handle& handle, device_id lost) const;
};

/// Carries out what `call_desk` decides.
struct call_actions {
  communicator_state& on;

  void operator()(call_desk::begin_operation& x) const;
  void operator()(call_desk::begin_split& x) const;
  void operator()(call_desk::refuse& x) const;
  void operator()(call_desk::answer_call& x) const;
};

} // namespace ringmaster
