#include "actors/coordination/init_calls.hpp"

#include "actors/coordination/communicator_creation.hpp"
#include "actors/coordination/coordinator_requests.hpp"
#include "messages/try.hpp"
#include "runtime/coordination/join_checks.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

namespace ringmaster {

namespace {

using wire_ids = google::protobuf::RepeatedField<uint64_t>;

device_ids devices_of(const wire_ids& ids) {
  device_ids result;
  for (auto id : ids)
    result.push_back(device_id{id});
  return result;
}

/// The first of `some` that `all` lacks.
std::optional<uint64_t> first_not_in(const wire_ids& all, const wire_ids& some) {
  const std::set<uint64_t> known(all.begin(), all.end());
  const auto i = std::ranges::find_if(some, [&](auto id) { return !known.contains(id); });
  return i == some.end() ? std::nullopt : std::optional{*i};
}

/// What is wrong with the request itself.
caf::error problem_of(const gpu_sim::CommInitRequest& x) {
  std::string text;
  if (!x.defaultpolicy() && !proto::FailurePolicy_IsValid(x.policy()))
    text = fmt::format("failure policy {} is not one of this version's", static_cast<int>(x.policy()));
  else if (!x.deviceids().empty() && x.numdevices() != 0 && static_cast<int>(x.numdevices()) != x.deviceids_size())
    text = fmt::format("CommInit asks for {} devices and names {}", x.numdevices(), x.deviceids_size());
  else if (auto id = first_not_in(x.deviceids(), x.freedeviceids()))
    text = fmt::format("freeDeviceIds names device 0x{:x}, and deviceIds does not", *id);
  else if (x.deviceids().empty() && x.numdevices() == 0)
    text = "CommInit asks for 0 devices; a communicator has at least 1";
  else if (!is_comm_name(x.name()))
    text = fmt::format("a communicator's name is one line of {} bytes at most, without control characters",
                       comm_name_bytes_max);
  return text.empty() ? caf::error{} : invalid(std::move(text));
}

} // namespace

caf::timespan init_calls::silence_max() const {
  auto& options = coordinator_.options;
  return std::min<caf::timespan>(options.communicators.suspect.pause_max, options.request_limit / 4);
}

caf::expected<device_ids> init_calls::ranks_for(const gpu_sim::CommInitRequest& x) const {
  RETURN_ERROR(problem_of(x));
  auto named = devices_of(x.deviceids());
  RETURN_ERROR(coordinator_.devices.check_free(devices_of(x.freedeviceids())));
  auto ranks = named.empty() ? coordinator_.devices.free_devices(x.numdevices(), "CommInit") : std::move(named);
  auto problem = ranks ? coordinator_.communicators.admit(1) : ranks.error();
  if (!problem)
    problem = coordinator_.devices.check({*ranks});
  if (!problem)
    problem = check_reach(coordinator_, *ranks);
  return problem ? caf::expected<device_ids>{std::move(problem)} : std::move(ranks);
}

gpu_sim::CommInitResponse init_calls::init_of(const gpu_sim::CommInitRequest& x, const device_ids& ranks,
                                              const calling_process& caller) {
  auto& defaults = coordinator_.options.communicators;
  known_communicator like;
  like.policy = x.defaultpolicy() ? defaults.policy : x.policy();
  like.deterministic = x.has_deterministic() ? x.deterministic() : defaults.deterministic;
  like.outlives_client = x.outlivesclient();
  like.name = x.name();
  like.stored.set_maker(caller.maker());
  return make_communicator(coordinator_, ranks, std::move(like));
}

gpu_sim::CommInitResponse init_calls::init_at_once(const gpu_sim::CommInitRequest& x) {
  auto ranks = ranks_for(x);
  return ranks ? init_of(x, *ranks, {}) : refuse(x, ranks.error());
}

gpu_sim::CommInitResponse init_calls::refuse(const gpu_sim::CommInitRequest& x, const caf::error& problem) {
  proto::Record record;
  auto& refused = *record.mutable_communicator_refused();
  refused.set_call("CommInit");
  refused.set_devices(x.numdevices());
  *refused.mutable_device_ids() = x.deviceids();
  refused.set_name(x.name());
  refused.set_reason(render(problem));
  coordinator_.journal(std::move(record));
  return refusal<gpu_sim::CommInitResponse>(problem);
}

caf::result<gpu_sim::CommInitResponse> init_calls::comm_init(const gpu_sim::CommInitRequest& x) {
  if (const auto made = coordinator_.communicators.made_by(x.caller(), x.callnumber()); !made.empty())
    return made_before(coordinator_.communicators.find(made.front())->stored); // it is sent again after a restart
  // The promise takes the sender: the owner is read first.
  auto owner = x.outlivesclient() ? caf::actor_addr{} : coordinator_.clients.calling_client();
  auto promise = coordinator_.self->make_response_promise<gpu_sim::CommInitResponse>();
  if (auto problem = coordinator_.check_waiting()) {
    promise.deliver(refusal<gpu_sim::CommInitResponse>(problem));
    return promise;
  }
  auto number = coordinator_.next_number();
  calls_.emplace(number,
                 waiting_call{coordinator_.calling_peer, x, std::move(owner), coordinator_.access.caller(), promise});
  desk_.begin(number);
  advance(number);
  return promise;
}

void init_calls::advance(uint64_t number) {
  auto& call = calls_.at(number);
  auto step = desk_.next(number, ranks_for(call.request));
  if (auto asked = std::get_if<init_desk::ask>(&step)) {
    for (auto id : asked->devices)
      ask_for_sign(number, id, false);
  } else if (auto waits = std::get_if<init_desk::wait>(&step)) {
    if (waits->starts_timer)
      coordinator_.self->delayed_send(coordinator_.self, silence_max(), atom::expire_v, number);
  } else if (auto made = std::get_if<init_desk::make>(&step)) {
    auto response = init_of(call.request, made->ranks, call.caller);
    coordinator_.store_communicator(communicator_id{response.commid()}, [&](auto& stored) {
      stored.set_caller(call.request.caller());
      stored.set_call_number(call.request.callnumber());
    });
    coordinator_.clients.own(call.owner, communicator_id{response.commid()});
    coordinator_.access.made(communicator_id{response.commid()}, call.caller, made->ranks.size());
    answer(number, std::move(response));
  } else {
    answer(number, refuse(call.request, std::get<init_desk::refuse>(step).problem));
  }
}

void init_calls::ask_for_sign(uint64_t number, device_id id, bool again) {
  auto settled = [this, number](bool last) {
    if (last)
      advance(number);
  };
  ask_device_then<gpu_sim::GetDeviceMetadataResponse>(
    coordinator_, id, silence_max(),
    [this, number, id, settled](const gpu_sim::GetDeviceMetadataResponse&) { settled(desk_.heard(number, id)); },
    [this, number, id, again, settled](const caf::error& problem) {
      if (code_of(problem) == errc::too_many)
        return settled(desk_.not_asked(number, problem));
      if (code_of(problem) != errc::timed_out)
        return settled(desk_.lost(number));
      if (!again) // the pause may have been this process's
        return ask_for_sign(number, id, true);
      give_up(number, id);
    },
    gpu_sim::GetDeviceMetadataRequest{});
}

void init_calls::give_up(uint64_t number, device_id id) {
  const auto silence = duration_text(2 * silence_max());
  const auto text = fmt::format("{} gave no sign of life for {} and was ended", coordinator_.devices.text_of(id),
                                silence);
  coordinator_.members.fence(id, {fmt::format("it gave no sign of life for {} when a communicator wanted it", silence),
                                  "coordinator", coordinator_.now_ns()});
  if (desk_.given_up(number, text))
    advance(number);
}

void init_calls::answer(uint64_t number, gpu_sim::CommInitResponse with) {
  auto call = calls_.extract(number);
  ensure(!call.empty(), "a CommInit call is answered once");
  ensure(!desk_.has(number), "a CommInit call is answered when it is decided");
  coordinator_.metadata.when_stored([promise = std::move(call.mapped().promise), with]() mutable {
    promise.deliver(std::move(with));
  });
}

void init_calls::serve() {
  for (auto number : desk_.waiting())
    advance(number);
}

bool init_calls::expire(uint64_t number) {
  if (!calls_.contains(number))
    return false;
  if (desk_.expired(number))
    advance(number);
  return true;
}

size_t init_calls::waiting_of(const request_peer& peer) const {
  ensure(calls_.size() == desk_.size(), "each CommInit call that waits is on the desk");
  return static_cast<size_t>(std::ranges::count_if(calls_, [&](auto& x) { return x.second.peer == peer; }));
}

} // namespace ringmaster
