#include <ringmaster/client.hpp>

#include "client/api/handles.hpp"
#include "messages/message_json.hpp"
#include "messages/wire_ids.hpp"
#include "runtime/health/verdict_text.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/journal/journal_store.hpp"
#include "runtime/journal/record_text.hpp"
#include "runtime/schedule/collective.hpp"

#include <algorithm>

namespace ringmaster::api {

static_assert(static_cast<int>(collective_kind::send_recv) == proto::SEND_RECV);
static_assert(static_cast<int>(failure_policy::abort) == proto::ABORT);
static_assert(static_cast<int>(fault_kind::broken) == proto::Verdict::BROKEN);
static_assert(static_cast<int>(fault::kind::slow) == proto::FaultRequest::SLOW);

namespace {

void set_collective(proto::Collective& to, const collective_call& call, size_t ranks) {
  to.set_kind(static_cast<proto::CollectiveKind>(call.kind));
  to.set_algorithm(call.algorithm);
  to.set_datatype(static_cast<proto::DataType>(call.type));
  to.set_op(static_cast<gpu_sim::ReduceOp>(call.how.op));
  to.set_user_op(call.how.user_op);
  to.set_count(call.count);
  to.set_root(call.root);
  to.set_peer(call.peer);
  to.set_chunk_count(call.chunk);
  to.mutable_counts()->Add(call.counts.begin(), call.counts.end());
  if (call.how.op == reduce_op::premul_sum)
    for (size_t rank = 0; rank < ranks; ++rank)
      to.add_factors(call.how.factor);
}

fault_verdict verdict_of(const proto::Verdict& x) {
  fault_verdict result;
  result.number = x.number();
  result.kind = static_cast<fault_kind>(x.kind());
  result.epoch = epoch_number{x.epoch()};
  result.operation = sequence_number{x.sequence()};
  result.text = text_of(x);
  for (auto& each : x.culprits())
    result.culprits.push_back({each.rank(), device_id{each.device_id()}, each.node(), each.host(), each.pid()});
  return result;
}

journal_record record_of(const proto::Record& x) {
  journal_record result;
  result.time = std::chrono::system_clock::time_point{
    std::chrono::duration_cast<std::chrono::system_clock::duration>(std::chrono::nanoseconds{x.time_ns()})};
  if (const auto* field = x.GetDescriptor()->FindFieldByNumber(static_cast<int>(x.event_case())))
    result.event = field->name();
  result.text = text_of(x);
  result.json = json_of(x);
  return result;
}

communicator handle_of(std::shared_ptr<client_state> owner, const gpu_sim::CommInitResponse& x) {
  ensure(x.commid() != 0, "a communicator that was made has an id");
  return {std::move(owner), id_of(x), infos_of(x.devices())};
}

expected<communicator> handle_of(std::shared_ptr<client_state> owner, caf::expected<gpu_sim::CommInitResponse>&& x) {
  if (!x)
    return public_error(x.error());
  return handle_of(std::move(owner), *x);
}

gpu_sim::CommInitRequest request_of(const communicator_options& options) {
  gpu_sim::CommInitRequest result;
  result.set_defaultpolicy(!options.on_failure);
  if (options.on_failure)
    result.set_policy(static_cast<proto::FailurePolicy>(*options.on_failure));
  if (options.deterministic)
    result.set_deterministic(*options.deterministic);
  result.set_name(options.name);
  return result;
}

} // namespace

communicator_status public_status(const gpu_sim::GetCommStatusResponse& x) {
  communicator_status result;
  result.in_progress = x.status() == gpu_sim::IN_PROGRESS;
  if (x.status() == gpu_sim::FAILED)
    result.failed = public_error(error_in(x) ? error_in(x) : make_error(errc::aborted, "an operation failed"));
  result.epoch = epoch_number{x.epoch()};
  result.devices = infos_of(x.devices());
  result.event = x.asyncerror();
  result.operations_in_flight = x.operationsinflight();
  for (auto& each : x.verdicts())
    result.verdicts.push_back(verdict_of(each));
  return result;
}

std::string_view name_of(collective_kind kind) {
  return ringmaster::name_of(static_cast<proto::CollectiveKind>(kind));
}

// -- memory --

void device_memory::range::give_back(client_state& client) const {
  client.calls.free(device, address); // fails only where the device or the coordinator is lost
}

namespace {

expected<void> check_range(uint64_t bytes, uint64_t offset, uint64_t size) {
  if (offset <= bytes && size <= bytes - offset)
    return {};
  return error{errc::out_of_range, std::to_string(size) + " bytes at offset " + std::to_string(offset)
                                     + " are not within the range, which has " + std::to_string(bytes)};
}

} // namespace

expected<void> device_memory::write_bytes(std::span<const std::byte> bytes, uint64_t offset) {
  if (auto fits = check_range(its_->bytes, offset, bytes.size()); !fits)
    return fits;
  std::byte* copy = nullptr;
  auto block = byte_block::uninitialized(bytes.size(), copy);
  std::copy(bytes.begin(), bytes.end(), copy);
  return public_result(its_.client()->calls.copy_to_device(its_->device, its_->address + offset, std::move(block)));
}

expected<void> device_memory::read_bytes(std::span<std::byte> bytes, uint64_t offset) const {
  if (auto fits = check_range(its_->bytes, offset, bytes.size()); !fits)
    return fits;
  auto block = its_.client()->calls.copy_to_host(its_->device, its_->address + offset, bytes.size());
  if (!block)
    return public_error(block.error());
  ensure(block->size() == bytes.size(), "a copy has the requested size");
  std::copy(block->bytes().begin(), block->bytes().end(), bytes.begin());
  return {};
}

// -- client --

client::client(const cluster& home, std::chrono::nanoseconds limit) {
  auto coordinator = home.internals()->coordinator();
  if (!coordinator)
    throw failure{public_error(coordinator.error())};
  state_ = std::make_shared<client_state>(home.internals(), *coordinator, limit);
}
client::client(client&&) noexcept = default;
client& client::operator=(client&&) noexcept = default;
client::~client() = default;

expected<communicator> client::make_communicator(uint32_t ranks, const communicator_options& options) {
  auto request = request_of(options);
  request.set_numdevices(ranks);
  return handle_of(state_, state_->calls.comm_init(std::move(request)));
}

expected<communicator> client::make_communicator(const std::vector<device_id>& devices,
                                                 const communicator_options& options) {
  auto request = request_of(options);
  for (auto each : devices)
    request.add_deviceids(each.value);
  return handle_of(state_, state_->calls.comm_init(std::move(request)));
}

expected<device_memory> client::allocate(device_id device, uint64_t bytes) {
  auto address = state_->calls.allocate(device, bytes);
  if (!address)
    return public_error(address.error());
  return device_memory{state_, device, *address, bytes};
}

expected<void> client::inject(device_id device, const fault& what) {
  proto::FaultRequest request;
  request.set_kind(static_cast<proto::FaultRequest::Kind>(what.what));
  request.set_at_step(what.at_round.has_value());
  request.set_step(what.at_round.value_or(0));
  request.set_delay_ns(static_cast<uint64_t>(what.delay.count()));
  return public_result(state_->calls.inject(device, request));
}

expected<std::vector<std::string>> client::drain(const std::string& node, std::chrono::nanoseconds within) {
  return public_result(state_->calls.drain(node, within));
}

expected<uint64_t> client::bytes_received(communicator_id communicator) {
  auto status = state_->calls.cluster_status();
  if (!status)
    return public_error(status.error());
  for (auto& each : status->communicators()) {
    if (each.comm_id() != communicator.value)
      continue;
    uint64_t result = 0;
    for (auto& way : each.routes())
      result += way.bytes();
    return result;
  }
  return error{errc::unknown_communicator, "there is no communicator " + to_string(communicator)};
}

expected<std::vector<journal_record>> client::journal(uint32_t records_max) {
  auto records = state_->calls.journal_tail(records_max);
  if (!records)
    return public_error(records.error());
  std::vector<journal_record> result;
  for (auto& each : *records)
    result.push_back(record_of(each));
  return result;
}

expected<void> client::flush_journal() {
  return public_result(state_->calls.journal_flush());
}

expected<std::vector<journal_record>> read_journal(const std::filesystem::path& directory, uint32_t records_max) {
  auto store = journal_store::open_read_only(directory);
  if (!store)
    return public_error(store.error());
  auto records = (*store)->tail(records_max);
  if (!records)
    return public_error(records.error());
  std::vector<journal_record> result;
  for (auto& each : *records)
    result.push_back(record_of(each));
  return result;
}

// -- communicator --

void communicator::group::give_back(client_state& client) const {
  client.calls.destroy(id); // fails only where the communicator or the coordinator has ended
}

expected<std::vector<device_memory>> communicator::allocate_bytes(uint64_t bytes) {
  std::vector<device_memory> result;
  for (auto& each : devices()) {
    auto address = its_.client()->calls.allocate(each.id, bytes);
    if (!address)
      return public_error(address.error());
    result.emplace_back(its_.client(), each.id, *address, bytes);
  }
  return result;
}

expected<sequence_number> communicator::enqueue(const collective_call& call) {
  proto::CollectiveRequest request;
  request.set_comm_id(its_->id.value);
  set_collective(*request.mutable_collective(), call, call.inputs.size());
  request.mutable_inputs()->Add(call.inputs.begin(), call.inputs.end());
  request.mutable_outputs()->Add(call.outputs.begin(), call.outputs.end());
  request.set_timeout_ns(static_cast<uint64_t>(call.timeout.count()));
  return public_result(its_.client()->calls.collective(request));
}

expected<void> communicator::group_start() {
  return public_result(its_.client()->calls.group_start(its_->id));
}

expected<void> communicator::group_end() {
  return public_result(its_.client()->calls.group_end(its_->id));
}

expected<communicator_status> communicator::status() {
  auto answer = its_.client()->calls.status(its_->id);
  if (!answer)
    return public_error(answer.error());
  return public_status(*answer);
}

expected<communicator_status> communicator::wait(std::chrono::nanoseconds within) {
  auto answer = its_.client()->calls.wait(its_->id, within);
  if (!answer)
    return public_error(answer.error());
  auto result = public_status(*answer);
  ensure(!result.in_progress, "a wait that succeeds leaves nothing in flight");
  if (result.failed)
    return *result.failed;
  return result;
}

expected<void> communicator::abort(const std::string& reason) {
  return public_result(its_.client()->calls.abort(its_->id, reason));
}

expected<std::vector<communicator>> communicator::split(const std::vector<int32_t>& colors,
                                                        const std::vector<int64_t>& keys) {
  auto made = its_.client()->calls.split(its_->id, colors, keys);
  if (!made)
    return public_error(made.error());
  std::vector<communicator> result;
  for (auto& each : *made)
    result.push_back(handle_of(its_.client(), each));
  return result;
}

expected<communicator> communicator::duplicate() {
  return handle_of(its_.client(), its_.client()->calls.duplicate(its_->id));
}

expected<communicator> communicator::shrink(const std::vector<uint32_t>& ranks) {
  return handle_of(its_.client(), its_.client()->calls.shrink(its_->id, ranks));
}

expected<communicator> communicator::grow(uint32_t devices) {
  return handle_of(its_.client(), its_.client()->calls.grow(its_->id, devices));
}

} // namespace ringmaster::api
