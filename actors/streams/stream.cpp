#include "actors/streams/stream.hpp"

#include "actors/calls/answers.hpp"
#include "actors/calls/request_limit.hpp"
#include "actors/links/link_hub.hpp"
#include "actors/streams/local_commands.hpp"
#include "actors/streams/route.hpp"
#include "runtime/configuration/routes.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace ringmaster {

void stream_state::enqueue(std::unique_ptr<command> cmd) {
  ensure(cmd != nullptr && cmd->number == 0, "a command is queued once");
  cmd->number = ++commands_;
  queue.push_back(std::move(cmd));
  start_head();
}

caf::error stream_state::queue_full() const {
  return make_error(errc::too_many, fmt::format("stream {} of device 0x{:x} has {} commands queued, its limit", id,
                                                memory->id(), options.commands_max));
}

void stream_state::start_head() {
  if (starting_)
    return; // a command that ends at once comes here again: the loop below goes on with the next
  starting_ = true;
  while (!queue.empty() && !head_has_started() && !faults.is_closed()) {
    auto& head = *queue.front();
    ensure(started_ < head.number, "commands start in their order");
    started_ = head.number;
    if (head.as_collective() == nullptr) // records of collectives have their own times
      head_started_ns_ = unix_ns();
    act_on(head.begin(*this));
  }
  starting_ = false;
  if (queue.empty() && ends_when_idle && commands_ > 0)
    self->quit();
}

void stream_state::act_on(const command_outcome& x) {
  if (!x.has_ended)
    return;
  ensure(!queue.empty(), "a command that ends is in the queue");
  auto ended = std::move(queue.front());
  queue.pop_front();
  collectives.note_head_gone(queue.size());
  resume_pending_ = 0;
  if (x.is_journaled) {
    ensure(ended->number == started_, "a command starts before its end is recorded");
    last_error = x.error;
    proto::Record record;
    auto& entry = *record.mutable_command_ended();
    entry.set_device_id(memory->id().value);
    entry.set_stream_id(id.value);
    entry.set_kind(ended->kind());
    entry.set_bytes(x.bytes);
    entry.set_started_ns(head_started_ns_);
    entry.set_ended_ns(unix_ns());
    entry.set_error(x.error ? render(x.error) : std::string{});
    journal(std::move(record));
  }
  ended.reset(); // its scratch is free for the next one
  if (!ends_by_damage())
    start_head();
}

bool stream_state::ends_by_damage() {
  auto damage = memory->damage();
  if (!damage)
    return false;
  faults.close();
  self->quit(std::move(damage));
  return true;
}

void stream_state::remove_if(const std::function<bool(const command&)>& condition) {
  if (queue.empty())
    return;
  auto goes = [&](auto& cmd) { return condition(*cmd); };
  const bool head_goes = goes(queue.front());
  queue.erase(std::remove_if(queue.begin() + 1, queue.end(), goes), queue.end());
  if (head_goes)
    act_on(command_outcome::ended_without_record());
}

void stream_state::resume_later(caf::timespan delay) {
  if (resume_pending_ != 0)
    return;
  resume_pending_ = ++resumes_;
  if (delay.count() > 0)
    self->delayed_send(self, delay, atom::resume_v, resume_pending_);
  else
    self->send(self, atom::resume_v, resume_pending_);
}

void stream_state::on_resume(uint64_t call) {
  if (call != resume_pending_)
    return; // its command has ended
  resume_pending_ = 0;
  head_event([&](command& head) { return head.resume(*this); });
}

void stream_state::limit_head(caf::timespan limit) {
  ensure(head_has_started(), "a limit is for a command that runs");
  self->delayed_send(self, limit, atom::expire_v, queue.front()->number);
}

void stream_state::on_limit(uint64_t command_number) {
  const auto i = std::find_if(queue.begin(), queue.end(), [=](auto& cmd) { return cmd->number == command_number; });
  if (i == queue.end())
    return;
  const bool is_head = i == queue.begin();
  const auto outcome = (*i)->on_limit(*this);
  ensure(is_head || !outcome.has_ended, "only the head ends by its limit");
  act_on(outcome);
}

bool stream_state::reads_memory(const device_handle& peer, const caf::strong_actor_ptr& receiver) const {
  if (receiver->node() == self->node())
    return may_go(options.route, &route_facts::in_place);
  return options.neighbours != nullptr && peer.memory != nullptr && peer.memory->host != 0
         && peer.memory->host == memory->place()->host;
}

stream_state::offering stream_state::offer_block(const device_handle& peer, const caf::strong_actor_ptr& receiver,
                                                 const transfer_key& key, uint64_t address, uint64_t bytes,
                                                 bool awaited, const caf::optional<block_reduction>& reduction) {
  offer what{key, {memory->id(), address, bytes, memory, memory->place()}, self->ctrl()};
  what.reduction = reduction;
  auto result = bytes > options.eager_bytes || reads_memory(peer, receiver) ? offering::lies : offering::travels;
  if (result == offering::lies) {
    bool linked = options.link != nullptr && receiver->node() != self->node();
    outgoing[key] = {what.source, linked ? options.link->expose(key, what.source) : nullptr};
  } else {
    std::byte* copy = nullptr;
    what.block = byte_block::uninitialized(bytes, copy);
    block_sink{copy}.put(0, *memory->at_runtime(address, bytes)); // checked before
    what.awaited = awaited;
    what.source.memory = nullptr;
    what.source.place = nullptr;
  }
  self->send(caf::actor_cast<stream_actor>(receiver), std::move(what));
  return result;
}

uint64_t stream_state::reads_of(const transfer_key& key) const {
  auto i = outgoing.find(key);
  return pulls_served + (i != outgoing.end() && i->second.link ? i->second.link->frames() : 0);
}

caf::expected<std::unique_ptr<route>> stream_state::route_to(offer source, const block_sink& sink) const {
  auto& window = source.source;
  if (window.memory == nullptr && window.place != nullptr && options.neighbours != nullptr) {
    auto mapped = options.neighbours->find(*window.place);
    if (mapped)
      window.memory = std::move(*mapped);
    else if (must_go(options.route, &route_facts::maps_memory))
      return std::move(mapped.error());
  }
  return make_route(source, sink, options);
}

std::unique_ptr<offer> stream_state::claim(const transfer_key& key) {
  auto i = incoming.find(key);
  if (i == incoming.end())
    return nullptr;
  auto result = std::make_unique<offer>(std::move(i->second));
  incoming.erase(i);
  return result;
}

void stream_state::enter_epoch(communicator_id communicator, epoch_number epoch) {
  if (!epochs.enter(communicator, epoch))
    return;
  auto older = [&](const auto& entry) {
    return entry.first.channel == communicator.value && entry.first.epoch != epoch_number{}
           && entry.first.epoch < epoch;
  };
  std::erase_if(incoming, older);
  std::erase_if(outgoing, older);
}

void stream_state::forget(communicator_id communicator) {
  enter_epoch(communicator, epoch_number{UINT64_MAX});
  epochs.forget(communicator);
  work.erase(communicator);
  ended_ops.forget(communicator);
}

bool stream_state::suffer(const proto::FaultRequest& x, const std::string& where, const std::function<void()>& go_on) {
  faults.disarm();
  static_assert(proto::FaultRequest::Kind_ARRAYSIZE == 3, "each kind has its word here, and its case below");
  constexpr const char* done[] = {"killed", "hung", "slowed"}; // by FaultRequest::Kind
  const bool for_a_while = x.kind() == proto::FaultRequest::HANG && x.delay_ns() > 0;
  const auto what = fmt::format("{}{} on request, {}", done[x.kind()],
                                for_a_while ? fmt::format(" for {}", duration_text(x.delay_ns())) : "", where);
  proto::Record record;
  record.mutable_fault_injected()->set_device_id(memory->id().value);
  record.mutable_fault_injected()->set_what(what);
  journal(std::move(record));
  switch (x.kind()) {
    case proto::FaultRequest::SLOW: faults.slow(request_limit(x.delay_ns())); return false;
    case proto::FaultRequest::HANG:
      hang(self, request_limit(x.delay_ns()), [this, go_on] {
        faults.open();
        go_on();
        start_head();
      });
      break;
    case proto::FaultRequest::KILL:
    default: self->quit(make_error(errc::killed_on_request, what)); break;
  }
  faults.close();
  return true;
}

void stream_state::journal(proto::Record record) {
  if (!options.journal)
    return;
  record.set_time_ns(unix_ns());
  self->send(options.journal, std::move(record));
}

void stream_state::synchronize(caf::timespan limit,
                               caf::typed_response_promise<proto::StreamSynchronizeResponse> promise) {
  if (limit.count() <= 0)
    limit = options.wait_limit;
  auto limit_s = std::chrono::duration<double>{limit}.count();
  self->delayed_send(self, limit, atom::expire_v, commands_ + 1);
  enqueue(make_synchronize(limit_s, std::move(promise)));
}

void stream_state::head_event(const std::function<command_outcome(command&)>& event) {
  if (head_has_started())
    act_on(event(*queue.front()));
}

void stream_state::queue_event(const std::function<command_outcome(command&)>& event) {
  for (size_t i = queue.size(); i-- > 0;) { // the head last: it may end
    const auto outcome = event(*queue[i]);
    ensure(i == 0 || !outcome.has_ended, "only the head ends by what every command hears");
    act_on(outcome);
  }
}

namespace {

using stream_pointer = stream_actor::stateful_pointer<stream_state>;

void on_offer(stream_state& state, const offer& x) {
  if (x.key.epoch != epoch_number{} && state.epochs.is_stale(communicator_id{x.key.channel}, x.key.epoch))
    return;
  if (!state.queue.empty() && state.queue.front()->expects(x.key))
    state.head_event([&](command& head) { return head.on_offer(state, x); });
  else if (x.key.epoch == epoch_number{}
           && std::none_of(state.queue.begin(), state.queue.end(), [&](auto& cmd) { return cmd->expects(x.key); }))
    state.self->send(caf::actor_cast<stream_actor>(x.sender),
                     refused::by(x.key, invalid(fmt::format("no receive waits for transfer {} on device 0x{:x}",
                                                            x.key.channel, state.memory->id()))));
  else if (state.incoming.size() < state.options.offers_max)
    state.incoming.emplace(x.key, x);
  else
    state.self->send(
      caf::actor_cast<stream_actor>(x.sender),
      refused::by(x.key,
                  make_error(errc::too_many, fmt::format("device 0x{:x} keeps {} offered blocks already, its limit",
                                                         state.memory->id(), state.options.offers_max))));
}

/// Answers a pull from what was offered; a block that is no longer on offer belongs to an older epoch.
void on_pull(stream_state& state, const pull& x) {
  auto i = state.outgoing.find(x.key);
  auto sender = caf::actor_cast<stream_actor>(state.self->current_sender());
  if (i == state.outgoing.end() || !sender)
    return;
  auto& window = i->second.window;
  if (x.offset > window.bytes || x.bytes > window.bytes - x.offset)
    return;
  ++state.pulls_served;
  if (x.bytes == 0)
    return; // a sign of life of a receiver that reads the memory itself
  auto source = state.memory->at_runtime(window.address + x.offset, x.bytes);
  if (!source)
    return;
  std::byte* bytes = nullptr;
  auto block = byte_block::uninitialized(x.bytes, bytes);
  block_sink{bytes}.put(0, *source);
  state.self->send(sender, chunk{x.key, x.offset, std::move(block)});
}

/// Queues a command whose caller waits only for that.
template <class Response>
Response accepted(stream_state& state, std::unique_ptr<command> cmd) {
  state.enqueue(std::move(cmd));
  Response result;
  result.set_success(true);
  return result;
}

} // namespace

stream_actor::behavior_type stream(stream_pointer self, stream_options options, stream_id id,
                                   std::shared_ptr<device_memory> memory, device_actor device, bool ends_when_idle) {
  auto& state = self->state;
  state.self = self;
  state.options = std::move(options);
  state.id = id;
  state.memory = std::move(memory);
  state.device = std::move(device);
  state.ends_when_idle = ends_when_idle;
  return {
    [&state](const operation_orders& x) { state.collectives.accept(x); },
    [&state](const proto::Release& x) { state.collectives.accept(x); },
    [&state](const proto::Quiesce& x) { state.collectives.accept(x); },
    [&state](const proto::ProgressRequest& x) { state.collectives.accept(x); },
    [&state](const proto::RecallRequest&, proto::Recalled& of_device) {
      return state.collectives.recall(std::move(of_device));
    },
    [&state](const offer& x) { on_offer(state, x); },
    [&state](const taken& x) { state.head_event([&](command& head) { return head.on_taken(state, x); }); },
    [&state](const refused& x) {
      for (auto& cmd : state.queue)
        cmd->forewarn(state, x);
      state.head_event([&](command& head) { return head.on_refused(state, x); });
    },
    [&state](const pull& x) { on_pull(state, x); },
    [&state](const chunk& x) { state.head_event([&](command& head) { return head.on_chunk(state, x); }); },
    [&state](const gpu_sim::MemcpyRequest& x,
             const byte_block& block) -> caf::result<gpu_sim::MemcpyResponse, byte_block> {
      if (state.full())
        return {refusal<gpu_sim::MemcpyResponse>(state.queue_full()), byte_block{}};
      auto promise = state.self->make_response_promise<gpu_sim::MemcpyResponse, byte_block>();
      state.enqueue(make_memcpy(x, block, promise));
      return promise;
    },
    [&state](const proto::CopyRequest& x) -> caf::result<proto::CopyResponse> {
      if (state.full())
        return refusal<proto::CopyResponse>(state.queue_full());
      auto promise = state.self->make_response_promise<proto::CopyResponse>();
      state.enqueue(make_copy(x, promise));
      return promise;
    },
    [&state](const gpu_sim::BeginSendRequest& x, const gpu_sim::StreamId& transfer, const device_handle& peer) {
      if (state.full())
        refuse_transfer(state, stream_id{transfer.value()}, state.queue_full());
      else
        state.enqueue(make_send(x, stream_id{transfer.value()}, peer));
    },
    [&state](const gpu_sim::BeginReceiveRequest& x, const gpu_sim::DeviceId& source) {
      if (state.full())
        refuse_transfer(state, stream_id{x.streamid().value()}, state.queue_full());
      else
        state.enqueue(make_receive(x, device_id{source.value()}));
    },
    [&state](const gpu_sim::DataChunk& x) { return receive_data(state, x); },
    [&state](const proto::EventRecordRequest& x, uint64_t record) {
      if (!state.full())
        return accepted<proto::EventRecordResponse>(state, make_event_record(event_id{x.event_id()}, record));
      if (state.device) // no command is left waiting for a record that is never made
        state.self->send(state.device, atom::recorded_v, x.event_id(), record);
      return refusal<proto::EventRecordResponse>(state.queue_full());
    },
    [&state](const proto::EventWaitRequest& x, uint64_t record) {
      if (state.full())
        return refusal<proto::EventWaitResponse>(state.queue_full());
      return accepted<proto::EventWaitResponse>(state, make_event_wait(event_id{x.event_id()}, record));
    },
    [&state](atom::recorded, uint64_t event, uint64_t record) {
      state.queue_event([&](command& cmd) { return cmd.on_recorded(state, event_id{event}, record); });
    },
    [&state](const gpu_sim::GetStreamStatusRequest&) {
      gpu_sim::GetStreamStatusResponse result;
      result.set_status(!state.queue.empty() ? gpu_sim::IN_PROGRESS
                        : !state.last_error  ? gpu_sim::SUCCESS
                                             : gpu_sim::FAILED);
      set_error_in(result, state.queue.empty() ? state.last_error : caf::error{});
      return result;
    },
    [&state](const proto::StreamSynchronizeRequest& x) -> caf::result<proto::StreamSynchronizeResponse> {
      if (state.full())
        return refusal<proto::StreamSynchronizeResponse>(state.queue_full());
      auto promise = state.self->make_response_promise<proto::StreamSynchronizeResponse>();
      state.synchronize(request_limit(x.timeout_ns()), promise);
      return promise;
    },
    [&state](const proto::FaultRequest& x) {
      if (!proto::FaultRequest::Kind_IsValid(x.kind()))
        return; // of a peer: the device lets no other kind in
      if (x.at_step())
        state.faults.arm(x);
      else
        state.suffer(x, state.queue.empty() ? "idle" : state.queue.front()->kind());
    },
    [&state](atom::resume, uint64_t call) { state.on_resume(call); },
    [&state](atom::expire, uint64_t number) { state.on_limit(number); },
  };
}

} // namespace ringmaster
