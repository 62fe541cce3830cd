#include "actors/coordination/rank_mailboxes.hpp"

#include "actors/calls/answers.hpp"
#include "actors/coordination/communicator_creation.hpp"

#include <fmt/format.h>

namespace ringmaster {

proto::MeetingResponse rank_mailboxes::open(const proto::MeetingRequest& x) {
  communicator_id id{x.comm_id()};
  auto known = coordinator_.communicators.known(id);
  if (!known)
    return refusal<proto::MeetingResponse>(known.error());
  auto no = [&](std::string_view why) {
    return refusal<proto::MeetingResponse>(make_error(
      errc::unreachable, fmt::format("the ranks of communicator {} have no shared-memory mailbox: {}", id, why)));
  };
  if ((*known)->policy == proto::REPLACE)
    return no("its policy is \"replace\", and the coordinator must know what a spare is to get");
  auto members = coordinator_.devices.members_of(id);
  if (members.size() != x.world_size())
    return no("ranks are lost");
  // On different hosts, calls that are not made in the mailbox may take an algorithm that adds in another order.
  if (coordinator_.options.meet_bytes != 0 && coordinator_.options.communicators.neighbours)
    if (auto problem = check_memory_reach(coordinator_, members))
      return no(render(problem));
  auto page = mailboxes_.page_of(id, epoch_number{x.epoch()}, x.world_size());
  return page ? std::move(*page) : refusal<proto::MeetingResponse>(page.error());
}

void rank_mailboxes::report(const proto::MetReport& x) {
  coordinator_.communicators.met(communicator_id{x.comm_id()}, x.operations(), x.ended_ns());
  proto::Record record;
  auto& what = *record.mutable_operations_met();
  what.set_comm_id(x.comm_id());
  what.set_epoch(x.epoch());
  what.set_operations(x.operations());
  what.set_bytes(x.bytes());
  what.set_started_ns(x.started_ns());
  what.set_ended_ns(x.ended_ns());
  what.set_world_size(x.world_size());
  coordinator_.journal(std::move(record));
}

void rank_mailboxes::close(communicator_id id) {
  if (mailboxes_.empty())
    return;
  mailboxes_.close(id);
  for (auto device : coordinator_.devices.members_of(id))
    close(device);
}

void rank_mailboxes::close(device_id id) {
  if (mailboxes_.empty())
    return;
  if (auto device = coordinator_.devices.find(id))
    for (auto communicator : device->communicators)
      mailboxes_.close(communicator);
}

} // namespace ringmaster
