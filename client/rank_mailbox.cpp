#include "client/rank_mailbox.hpp"

#include "actors/calls/request_limit.hpp"
#include "actors/calls/wall_clock.hpp"
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/mailbox/shared_mailbox.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/schedule/request_of.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace ringmaster {

namespace {

/// A rank's buffers of a call, on its device.
struct call_buffers {
  uint64_t input = 0, input_bytes = 0;
  uint64_t output = 0, output_bytes = 0;
  bool in_place = false;
};

call_buffers buffers_of(const proto::RankCall::Part& x, const plan_request& request) {
  auto kind = x.collective().kind();
  auto element = size_of(x.collective().datatype());
  call_buffers result{x.input(), input_count(kind, request, request.rank) * element, x.output(),
                      output_count(kind, request, request.rank) * element, x.in_place()};
  if (x.in_place()) {
    auto at = in_place(kind, request, request.rank);
    result.input = x.input() + at.input * element;
    result.output = x.input() + at.output * element;
  }
  return result;
}

bool overlap(const call_buffers& x) {
  return x.input_bytes > 0 && x.output_bytes > 0 && x.input < x.output + x.output_bytes
         && x.output < x.input + x.input_bytes;
}

void pause_briefly() {
#ifdef __x86_64__
  __builtin_ia32_pause();
#endif
}

shared_mailbox::fingerprint fingerprint_of(const proto::RankCall::Part& x) {
  auto& what = x.collective();
  uint64_t root = has_root(what.kind()) ? what.root() : 0;
  uint64_t op = reduces(what.kind()) ? static_cast<uint64_t>(what.op()) : 0;
  return {static_cast<uint64_t>(what.kind()) | static_cast<uint64_t>(what.datatype()) << 8 | op << 16
            | uint64_t{x.in_place()} << 24 | root << 32,
          what.count()};
}

} // namespace

caf::expected<std::shared_ptr<rank_mailbox>> rank_mailbox::join(const proto::MeetingResponse& page, const place& where,
                                                                std::shared_ptr<own_device> device,
                                                                by_messages otherwise, abort give_up) {
  TRY(file, mailbox_file::reach(page, shared_mailbox::bytes_of(where.ranks, page.slot_bytes())));
  std::shared_ptr<rank_mailbox> result{new rank_mailbox{std::move(*file), where, page.slot_bytes(), std::move(device),
                                                        std::move(otherwise), std::move(give_up)}};
  if (!result->page_.join())
    return make_error(errc::in_use, fmt::format("rank {} of communicator {} has another handle: its calls are messages",
                                                where.rank, where.communicator));
  return result;
}

rank_mailbox::rank_mailbox(std::unique_ptr<mailbox_file> file, const place& where, uint64_t slot_bytes,
                           std::shared_ptr<own_device> device, by_messages otherwise, abort give_up)
  : where_(where), slot_bytes_(slot_bytes), device_(std::move(device)), otherwise_(std::move(otherwise)),
    give_up_(std::move(give_up)), file_(std::move(file)), page_(file_->data(), where.ranks, slot_bytes, where.rank),
    stale_(std::make_shared<std::atomic<bool>>(false)) {
  ensure(where_.rank < where_.ranks, "a rank is one of those that share the page");
  ensure(device_ != nullptr && device_->memory != nullptr, "a rank that uses shared memory hosts its device");
}

void rank_mailbox::make_way(const std::shared_ptr<own_device>& device, work::state& calls) {
  std::scoped_lock lock{device->guard};
  if (device->meets != nullptr)
    device->meets->look_until_settled(clock::time_point::max());
  ensure(device->meets == nullptr, "an open call is settled before the next one");
  ++device->messages_under_way;
  drive(calls, nullptr, [device](const proto::RankCallResponse&) {
    const auto before = device->messages_under_way--;
    ensure(before > 0, "a message that is answered was counted");
  });
}

void rank_mailbox::leave() {
  std::scoped_lock lock{device_->guard};
  if (attempt_)
    settle(page_.give_up(attempt_->number));
  page_.close();
}

bool rank_mailbox::can_meet(const proto::RankCall& x, const plan_request& request) const {
  if (device_->messages_under_way != 0 || stale_->load() || x.parts_size() != 1 || x.epoch() != where_.epoch.value)
    return false;
  auto& part = x.parts(0);
  auto& what = part.collective();
  return !part.split() && has_one_output(what.kind()) && what.algorithm() == "auto" && what.chunk_count() == 0
         && what.counts().empty() && part.receive_counts().empty() && what.op() != gpu_sim::USER
         && !check_request(what.kind(), request);
}

bool rank_mailbox::bring_input(const proto::RankCall& x, const plan_request& request, uint64_t number) {
  auto& part = x.parts(0);
  auto& what = part.collective();
  auto element = size_of(what.datatype());
  auto bytes = buffers_of(part, request);
  if (bytes.input_bytes > slot_bytes_ || bytes.input % element != 0 || bytes.output % element != 0
      || (!bytes.in_place && overlap(bytes)))
    return false;
  auto input = device_->memory->at(bytes.input, bytes.input_bytes);
  if ((bytes.input_bytes > 0 && !input)
      || (bytes.output_bytes > 0 && !device_->memory->at(bytes.output, bytes.output_bytes)))
    return false;
  if (reduces(what.kind()) && (!combine_ || combine_->datatype() != what.datatype() || combine_->op() != what.op())) {
    auto found = reducer::of(what.datatype(), what.op());
    if (!found)
      return false;
    combine_.emplace(std::move(*found));
  }
  if (bytes.input_bytes == 0)
    return true;
  auto* slot = page_.slot(number).data();
  if (!reduces(what.kind()) || what.op() != gpu_sim::PREMUL_SUM)
    std::copy(input->begin(), input->end(), slot);
  else if (what.factors_size() == 1)
    scale(what.datatype(), what.factors(0), input->data(), slot, bytes.input_bytes / element);
  else
    return false;
  return !device_->memory->damage(); // or zeros would be summed
}

caf::error rank_mailbox::page_lost() {
  if (!file_->damaged() && page_.intact())
    return caf::none;
  auto why = fmt::format(
    "rank {} of communicator {}: the shared-memory page of its ranks was truncated, or its disk is full; it is unknown "
    "which calls the others have made there, and the communicator is aborted",
    where_.rank, where_.communicator);
  if (auto give_up = std::exchange(give_up_, nullptr))
    give_up(why);
  return make_error(errc::aborted, std::move(why));
}

void rank_mailbox::call(proto::RankCall x, std::shared_ptr<work::state> calls) {
  std::scoped_lock lock{device_->guard};
  if (device_->meets != nullptr) // calls are in order, those of the device's other handles, too
    device_->meets->look_until_settled(clock::time_point::max());
  ensure(!attempt_ && !open_, "a rank has one call on the page at a time");
  auto number = ++number_;
  auto request = x.parts_size() == 1 ? request_of(x.parts(0).collective(), where_.ranks, where_.rank) : plan_request{};
  auto meets = can_meet(x, request) && page_.others_are_near(number) && bring_input(x, request, number);
  if (!meets)
    page_.pass(number);
  if (auto problem = page_lost())
    return finish(*calls, {}, std::move(problem));
  if (!meets)
    return send(std::move(x), std::move(calls));
  auto now = clock::now();
  auto patience = x.timeout_ns() == 0 ? look_every
                                      : std::min<clock::duration>(look_every, request_limit(x.timeout_ns()) / 2);
  attempt_ = {std::move(x), std::move(request), std::move(calls), number, {}, now, now + patience};
  attempt_->what = fingerprint_of(attempt_->call.parts(0));
  drive(*attempt_->calls, shared_from_this());
  device_->meets = this;
  open_ = true;
  page_.arrive(number, attempt_->what);
  settle(page_.look(number, attempt_->what));
}

void rank_mailbox::send(proto::RankCall x, std::shared_ptr<work::state> calls) {
  ++device_->messages_under_way;
  drive(*calls, nullptr, [device = device_, stale = stale_, epoch = x.epoch()](const proto::RankCallResponse& answer) {
    if (answer.epoch() != epoch) // or 0: there was no answer
      *stale = true;
    const auto before = device->messages_under_way--;
    ensure(before > 0, "a message that is answered was counted");
  });
  otherwise_(std::move(x), std::move(calls));
}

bool rank_mailbox::settle(shared_mailbox::outcome how) {
  if (how == shared_mailbox::outcome::open)
    return false;
  ensure(attempt_.has_value(), "a call that is settled was open");
  ensure(device_->meets == this, "the device knows the mailbox of its open call");
  auto x = std::move(*attempt_);
  attempt_.reset();
  device_->meets = nullptr;
  open_ = false;
  if (how == shared_mailbox::outcome::met) {
    write_output(x);
    return true;
  }
  if (auto problem = page_lost()) {
    finish(*x.calls, {}, std::move(problem));
    return true;
  }
  if (auto limit = x.call.timeout_ns(); limit != 0) {
    const auto since = std::chrono::nanoseconds{clock::now() - x.began}.count();
    ensure(since >= 0, "time never runs backwards");
    auto taken = static_cast<uint64_t>(since);
    x.call.set_timeout_ns(std::max(limit, taken + 1) - taken);
  }
  send(std::move(x.call), std::move(x.calls));
  return true;
}

void rank_mailbox::write_output(const attempt& x) {
  auto& part = x.call.parts(0);
  auto& what = part.collective();
  auto bytes = buffers_of(part, x.request);
  ensure(bytes.input_bytes <= slot_bytes_, "inputs fit their slots");
  inputs_.clear();
  for (uint32_t rank = 0; rank < where_.ranks; ++rank)
    inputs_.push_back(page_.slot_of(rank, x.number));
  if (bytes.output_bytes > 0) {
    auto output = device_->memory->at(bytes.output, bytes.output_bytes);
    ensure(output.engaged(), "an output lies in the device's memory, as was checked before the call arrived");
    output_of(what.kind(), x.request, combine_ ? &*combine_ : nullptr, size_of(what.datatype()), inputs_,
              output->data());
  }
  auto problem = page_lost();
  if (!problem)
    problem = device_->memory->damage();
  ++met_calls_;
  if (where_.rank == 0)
    count(x, bytes.input_bytes);
  proto::RankCallResponse answer;
  answer.set_success(!problem);
  answer.set_epoch(where_.epoch.value);
  finish(*x.calls, std::move(answer), std::move(problem));
}

// -- waiting ----------------------------------------------------------------------

bool rank_mailbox::look() {
  ensure(attempt_.has_value(), "a call that is polled is open");
  auto how = page_.look(attempt_->number, attempt_->what);
  if (how == shared_mailbox::outcome::open && clock::now() >= attempt_->gives_up)
    how = page_.give_up(attempt_->number);
  return settle(how);
}

void rank_mailbox::look(work::state& calls) {
  std::unique_lock lock{device_->guard, std::try_to_lock};
  if (lock && attempt_ && attempt_->calls.get() == &calls)
    look();
}

void rank_mailbox::wait(work::state& calls, clock::time_point until) {
  std::scoped_lock lock{device_->guard};
  if (attempt_ && attempt_->calls.get() == &calls)
    look_until_settled(until);
}

void rank_mailbox::look_until_settled(clock::time_point until) {
  ensure(attempt_.has_value(), "a thread waits for a call that is open");
  constexpr auto spins_for = std::chrono::microseconds{200}; // waking a thread takes a tenth of it
  constexpr int looks = 64;                                  // between two at the clock
  // Asked once: the C library opens a file of the system's for it, which takes longer than the rest of a call.
  static const auto processors = std::thread::hardware_concurrency();
  // A rank that has a processor comes within a microsecond or two; others must be given one.
  int pauses = where_.ranks > processors ? 0 : 4 * looks;
  auto sleeps_at = std::min(until, clock::now() + spins_for);
  do {
    for (int i = 0; i < looks; ++i) {
      if (settle(page_.look(attempt_->number, attempt_->what)))
        return;
      if (pauses > 0 && --pauses > 0)
        pause_briefly();
      else
        std::this_thread::yield();
    }
  } while (clock::now() < sleeps_at);
  while (!look() && clock::now() < until)
    sleep_until(std::min(until, attempt_->gives_up));
}

void rank_mailbox::sleep_until(clock::time_point until) {
  ensure(attempt_.has_value(), "a thread sleeps while a call is open");
  auto changes = page_.begin_to_wait();
  auto left = until - clock::now();
  if (page_.look(attempt_->number, attempt_->what) == shared_mailbox::outcome::open && left.count() > 0) {
    auto ns = std::chrono::nanoseconds{left}.count();
    timespec limit{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
    ::syscall(SYS_futex, &page_.changes(), FUTEX_WAIT, changes, &limit, nullptr, 0);
  }
  page_.end_to_wait();
}

// -- looked after -------------------------------------------------------------------

bool rank_mailbox::wants_ticks() {
  return (open_ || unreported_ > 0) && !ticking_.exchange(true);
}

bool rank_mailbox::tick() {
  if (std::unique_lock lock{device_->guard, std::try_to_lock}; lock && attempt_)
    look();
  ticking_ = false;
  return wants_ticks();
}

void rank_mailbox::count(const attempt& x, uint64_t bytes) {
  static const auto wall = wall_clock::of_this_process();
  std::scoped_lock lock{report_guard_};
  auto now = clock::now();
  if (met_.operations() == 0) {
    met_.set_started_ns(wall.unix_ns(x.began));
    report_at_ = now + report_every;
  }
  met_.set_operations(met_.operations() + 1);
  met_.set_bytes(met_.bytes() + bytes);
  met_.set_ended_ns(wall.unix_ns(now));
  unreported_ = met_.operations();
}

std::optional<proto::MetReport> rank_mailbox::report(bool at_once) {
  std::scoped_lock lock{report_guard_};
  if (met_.operations() == 0 || (!at_once && clock::now() < report_at_))
    return std::nullopt;
  ensure(where_.rank == 0, "rank 0 reports for all ranks");
  auto result = std::exchange(met_, {});
  unreported_ = 0;
  result.set_comm_id(where_.communicator.value);
  result.set_epoch(where_.epoch.value);
  result.set_world_size(where_.ranks);
  return result;
}

} // namespace ringmaster
