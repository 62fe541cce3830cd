// The COORDINATOR's CommInit: who would be the ranks, whether each of them lives, and their communicator.
#include "actors/coordination/coordinator_requests.hpp"
#include "runtime/coordination/comm_name.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ringmaster {

namespace {

/// What makes no sense in the request, whoever is there.
caf::error senseless(const gpu_sim::CommInitRequest& x) {
  std::string text;
  if (!x.defaultpolicy() && !proto::FailurePolicy_IsValid(x.policy()))
    text = fmt::format("failure policy {} is not one of this version's", static_cast<int>(x.policy()));
  else if (!x.deviceids().empty() && x.numdevices() != 0 && static_cast<int>(x.numdevices()) != x.deviceids_size())
    text = fmt::format("CommInit asks for {} devices and names {}", x.numdevices(), x.deviceids_size());
  else if (x.deviceids().empty() && x.numdevices() == 0)
    text = "CommInit asks for 0 devices; a communicator has at least 1";
  else if (!is_comm_name(x.name()))
    text = fmt::format("a communicator's name is one line of {} bytes at most, without control characters",
                       comm_name_bytes_max);
  return text.empty() ? caf::error{} : make_error(errc::invalid_argument, std::move(text));
}

} // namespace

caf::timespan coordinator_state::silence_max() const {
  return std::min<caf::timespan>(options.communicators.suspect.pause_max, options.request_limit / 4);
}

caf::expected<device_ids> coordinator_state::ranks_for(const gpu_sim::CommInitRequest& x) const {
  if (auto problem = senseless(x))
    return problem;
  device_ids named;
  for (auto id : x.deviceids())
    named.push_back(device_id{id});
  auto ranks = named.empty() ? devices.free_devices(x.numdevices(), "CommInit") : std::move(named);
  auto problem = ranks ? communicators.admit(1) : ranks.error();
  if (!problem)
    problem = devices.check({*ranks});
  if (!problem)
    problem = check_reach(*ranks);
  return problem ? caf::expected<device_ids>{std::move(problem)} : std::move(ranks);
}

gpu_sim::CommInitResponse coordinator_state::init_of(const gpu_sim::CommInitRequest& x, const device_ids& ranks) {
  known_communicator like;
  like.policy = x.defaultpolicy() ? options.communicators.policy : x.policy();
  like.deterministic = x.has_deterministic() ? x.deterministic() : options.communicators.deterministic;
  like.outlives_client = x.outlivesclient();
  like.name = x.name();
  return make_communicator(ranks, std::move(like));
}

gpu_sim::CommInitResponse coordinator_state::init_at_once(const gpu_sim::CommInitRequest& x) {
  auto ranks = ranks_for(x);
  return ranks ? init_of(x, *ranks) : refuse_init(x, ranks.error());
}

gpu_sim::CommInitResponse coordinator_state::refuse_init(const gpu_sim::CommInitRequest& x, const caf::error& problem) {
  proto::Record record;
  auto& refused = *record.mutable_communicator_refused();
  refused.set_call("CommInit");
  refused.set_devices(x.numdevices());
  *refused.mutable_device_ids() = x.deviceids();
  refused.set_name(x.name());
  refused.set_reason(render(problem));
  journal(std::move(record));
  return refusal<gpu_sim::CommInitResponse>(problem);
}

caf::result<gpu_sim::CommInitResponse> coordinator_state::comm_init(const gpu_sim::CommInitRequest& x) {
  auto owner = x.outlivesclient() ? caf::actor_addr{} : calling_client(); // the promise takes the sender
  auto promise = self->make_response_promise<gpu_sim::CommInitResponse>();
  if (auto problem = check_waiting()) {
    promise.deliver(refusal<gpu_sim::CommInitResponse>(problem));
    return promise;
  }
  auto number = ++waits_;
  init_calls_.emplace(number, init_call{calling_peer, x, std::move(owner), promise});
  choose(number);
  return promise;
}

void coordinator_state::choose(uint64_t number) {
  auto& call = init_calls_.at(number);
  auto ranks = ranks_for(call.request);
  if (!ranks && !call.silent.empty() && !call.expired && code_of(ranks.error()) == errc::too_few_devices) {
    if (!std::exchange(call.waits, true)) // their supervisors start others
      self->delayed_send(self, silence_max(), atom::expire_v, number);
    return;
  }
  if (!ranks)
    return end_init(number,
                    refuse_init(call.request, make_error(code_of(ranks.error()), render(ranks.error()) + call.silent)));
  device_ids unheard;
  for (auto id : *ranks)
    if (call.living.count(id) == 0)
      unheard.push_back(id);
  if (unheard.empty()) {
    auto made = init_of(call.request, *ranks);
    own(call.owner, communicator_id{made.commid()});
    return end_init(number, std::move(made));
  }
  call.asked = unheard.size();
  for (auto id : unheard)
    ask_for_sign(number, id, false);
}

void coordinator_state::ask_for_sign(uint64_t number, device_id id, bool again) {
  auto heard = [this, number](std::optional<device_id> living) {
    auto& call = init_calls_.at(number);
    if (living)
      call.living.insert(*living);
    if (--call.asked == 0)
      choose(number);
  };
  ask_device_then<gpu_sim::GetDeviceMetadataResponse>(
    *this, id, silence_max(), [heard, id](const gpu_sim::GetDeviceMetadataResponse&) { heard(id); },
    [this, number, id, again, heard](const caf::error& problem) {
      if (code_of(problem) != errc::timed_out)
        return heard(std::nullopt);
      if (!again) // it may be we who stood still
        return ask_for_sign(number, id, true);
      auto silence = duration_text(2 * silence_max());
      init_calls_.at(number).silent += fmt::format("; {} gave no sign of life for {} and was ended",
                                                   devices.text_of(id), silence);
      fence(id, {fmt::format("it gave no sign of life for {} when a communicator wanted it", silence), "coordinator",
                 now_ns()});
      heard(std::nullopt);
    },
    gpu_sim::GetDeviceMetadataRequest{});
}

void coordinator_state::end_init(uint64_t number, gpu_sim::CommInitResponse answer) {
  auto call = init_calls_.extract(number);
  call.mapped().promise.deliver(std::move(answer));
}

void coordinator_state::serve_inits() {
  std::vector<uint64_t> waiting;
  for (auto& [number, call] : init_calls_)
    if (call.waits && call.asked == 0)
      waiting.push_back(number);
  for (auto number : waiting)
    choose(number);
}

} // namespace ringmaster
