// What a stream does with pulls, offers and chunks that a peer should not have sent.
#include "actors/streams/stream.hpp"

#include "tests/support/actor_state.hpp"
#include "tests/support/simulated_client.hpp"
#include "tests/support/temporary_directory.hpp"

#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

constexpr uint64_t number = 11, peer = 9, base = 1 << 20;
constexpr transfer_key key{.channel = number};

/// A stream without a device; the test is its peer, and gets what it sends.
struct lone_stream : deterministic_system {
  lone_stream() {
    auto opened = device_memory::open({device_id{7}, dir.path() / "memory", base, 8192});
    REQUIRE_MESSAGE(opened, render(opened.error()));
    memory = *opened;
    stream_options options;
    options.chunk_bytes = 64;
    options.credits = 4;
    options.offers_max = 2;
    handle = sys.spawn(ringmaster::stream, options, stream_id{3}, memory, device_actor{}, false);
  }

  ~lone_stream() { stop(handle); }

  template <class... Ts>
  void send(Ts&&... xs) {
    self->send(handle, std::forward<Ts>(xs)...);
    look();
  }

  /// Takes what has come.
  void look() {
    deliver_all();
    for (bool more = true; more;)
      self->receive([&](const offer& x) { offers.push_back(x); }, [&](const pull& x) { pulls.push_back(x); },
                    [&](const chunk& x) { chunks.push_back(x); }, [&](const taken&) { ++taken_count; },
                    [&](const refused& x) { refusals.push_back(x.reason); },
                    [&](const proto::RankReport& x) {
                      reports.push_back(x.phase());
                      if (!x.error().empty())
                        problems.push_back(x.error());
                    },
                    caf::after(std::chrono::seconds{0}) >> [&] { more = false; });
  }

  caf::strong_actor_ptr me() { return caf::actor_cast<caf::strong_actor_ptr>(self.ptr()); }
  stream_state& state() { return state_of<stream_state>(handle); }
  std::span<std::byte> at(uint64_t offset, uint64_t bytes) { return *memory->at(base + offset, bytes); }

  /// A receive of `bytes` to the start of the memory, with our offer of them, from which it has to pull.
  void receive(uint64_t bytes, const caf::optional<block_reduction>& reduction = {}) {
    gpu_sim::BeginReceiveRequest request;
    request.mutable_streamid()->set_value(number);
    request.mutable_recvbuffaddr()->set_value(base);
    request.set_numbytes(bytes);
    gpu_sim::DeviceId from;
    from.set_value(peer);
    send(request, from);
    offer what{key, {device_id{peer}, 4096, bytes, nullptr}, me()};
    what.reduction = reduction;
    send(what);
  }

  /// A send of `bytes` from 512 on.
  void send_block(uint64_t bytes) {
    gpu_sim::BeginSendRequest request;
    request.mutable_sendbuffaddr()->set_value(base + 512);
    request.set_numbytes(bytes);
    request.mutable_dstrank()->set_value(1);
    gpu_sim::StreamId id;
    id.set_value(number);
    send(request, id, device_handle{me(), nullptr});
    REQUIRE(offers.size() == 1);
  }

  /// A broadcast of 64 bytes from rank 0, the test, which is its communicator, too.
  void order_broadcast() {
    proto::OperationBatch batch;
    auto& plan = *batch.add_plans();
    plan.set_comm_id(number);
    plan.set_epoch(1);
    plan.set_sequence(1);
    plan.mutable_collective()->set_kind(proto::BROADCAST);
    plan.mutable_collective()->set_algorithm("naive");
    plan.mutable_collective()->set_datatype(proto::FLOAT64);
    plan.mutable_collective()->set_count(8);
    for (uint64_t id : {peer, uint64_t{7}})
      plan.add_device_ids(id);
    for (uint64_t address : {uint64_t{4096}, base}) {
      plan.add_input_addresses(address);
      plan.add_output_addresses(address + 512);
    }
    device_handles members{{me(), me()}, {nullptr, caf::actor_cast<caf::strong_actor_ptr>(handle)}};
    send(operation_orders{std::make_shared<const proto::OperationBatch>(std::move(batch)),
                          std::make_shared<const device_handles>(std::move(members))});
  }

  void release() {
    proto::Release x;
    x.set_comm_id(number);
    x.set_epoch(1);
    x.set_sequence(1);
    send(x);
  }

  temporary_directory dir;
  std::shared_ptr<device_memory> memory;
  stream_actor handle;
  std::vector<offer> offers;
  std::vector<pull> pulls;
  std::vector<chunk> chunks;
  std::vector<std::string> refusals;
  std::vector<proto::RankReport::Phase> reports;
  std::vector<std::string> problems; ///< Of those reports.
  int taken_count = 0;
};

byte_block some_bytes(uint64_t count) {
  return counted_bytes(count, 1);
}

bool all_zero(std::span<std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](auto x) { return x == std::byte{0}; });
}

} // namespace

TEST_CASE("forged messages: a receiver has as many pulls outstanding as it has credits, and no more") {
  lone_stream x;
  const uint64_t bytes = 1000; // the last of 16 chunks is a short one
  x.receive(bytes);
  CHECK(x.pulls.size() == 4);
  const auto block = counted_bytes(bytes);
  for (size_t answered = 0; answered < x.pulls.size(); ++answered) {
    CAPTURE(answered);
    const auto next = x.pulls[answered];
    CHECK(next.key == key);
    CHECK(next.offset == 64 * answered);
    CHECK(next.bytes == (answered == 15 ? 40 : 64));
    CHECK(x.taken_count == 0);
    x.send(chunk{key, next.offset, counted_bytes(next.bytes, static_cast<int>(next.offset))});
    CHECK(x.pulls.size() == std::min<size_t>(16, answered + 5));
  }
  CHECK(x.pulls.size() == 16);
  CHECK(x.taken_count == 1);
  auto got = x.at(0, bytes);
  CHECK(std::equal(got.begin(), got.end(), block.bytes().begin(), block.bytes().end()));
}

TEST_CASE("forged messages: a chunk of another place, or of more than was asked for, ends the transfer") {
  struct row {
    uint64_t offset, bytes;
    const char* refusal;
  };
  for (auto& forged : {row{256, 64, "a chunk of 64 bytes at offset 256 came that was not asked for"},
                       row{1, 64, "a chunk of 64 bytes at offset 1 came"},
                       row{UINT64_MAX - 63, 64, "at offset 18446744073709551552 came"},
                       row{0, 257, "a chunk of 257 bytes at offset 0 came"}, // four chunks are under way
                       row{0, 1001, "a chunk of 1001 bytes at offset 0 came"}}) {
    CAPTURE(forged.offset);
    CAPTURE(forged.bytes);
    lone_stream x;
    x.receive(1000);
    x.send(chunk{key, forged.offset, some_bytes(forged.bytes)});
    REQUIRE(x.refusals.size() == 1);
    CHECK(contains(x.refusals[0], forged.refusal));
    CHECK(x.taken_count == 0);
    CHECK(x.state().queue.empty());
    CHECK(contains(render(x.state().last_error), forged.refusal));
    CHECK(all_zero(x.at(0, 8192)));
    x.send(chunk{key, 0, some_bytes(64)}); // too late
    CHECK(all_zero(x.at(0, 8192)));
  }
}

TEST_CASE("forged messages: a chunk that comes twice ends the transfer, one of an unknown transfer is ignored") {
  lone_stream x;
  x.receive(256);
  x.send(chunk{transfer_key{.channel = number + 1}, 0, some_bytes(64)});
  x.send(chunk{transfer_key{.channel = number, .index = 1}, 0, some_bytes(64)});
  CHECK(x.refusals.empty());
  CHECK(all_zero(x.at(0, 8192)));
  x.send(chunk{key, 0, some_bytes(64)});
  CHECK(x.refusals.empty());
  x.send(chunk{key, 0, some_bytes(64)});
  REQUIRE(x.refusals.size() == 1);
  CHECK(contains(x.refusals[0], "a chunk of 64 bytes at offset 0 came that was not asked for"));
  CHECK(all_zero(x.at(64, 8128)));
}

TEST_CASE("a chunk may come before an earlier one: where the way between two processes changes, order is lost") {
  lone_stream x;
  x.receive(250);
  auto block = some_bytes(250);
  for (uint64_t offset : {128, 0, 192, 64})
    x.send(chunk{key, offset, block.part(offset, std::min<uint64_t>(64, 250 - offset))});
  CHECK(x.refusals.empty());
  CHECK(x.taken_count == 1);
  auto got = x.at(0, 250);
  CHECK(std::equal(got.begin(), got.end(), block.bytes().begin(), block.bytes().end()));
}

TEST_CASE("forged messages: an offer with a reduction that does not exist, or of other elements, is refused") {
  for (auto reduction : {block_reduction{99, 0}, block_reduction{-1, 0}, block_reduction{gpu_sim::USER, 0},
                         block_reduction{0, 99}, block_reduction{0, -7}, block_reduction{0, proto::FLOAT64}}) {
    lone_stream x;
    x.receive(12, reduction);
    CHECK(x.refusals.size() == 1);
    CHECK(x.pulls.empty());
    CHECK(all_zero(x.at(0, 8192)));
  }
}

TEST_CASE("forged messages: a release that comes before every step has ended changes nothing") {
  lone_stream x;
  x.order_broadcast();
  x.release();
  CHECK(x.reports.empty());
  CHECK(x.state().queue.size() == 1);
  const transfer_key block{.channel = number, .epoch = {1}, .sequence = {1}, .source = 0, .destination = 1};
  x.send(offer{block, {device_id{peer}, 4096, 64, nullptr}, x.me()});
  x.release();
  CHECK(x.reports.empty());
  x.send(chunk{block, 0, some_bytes(64)});
  CHECK(x.reports == std::vector{proto::RankReport::FINISHED});
  x.release();
  CHECK(x.reports == std::vector{proto::RankReport::FINISHED, proto::RankReport::COMMITTED});
  CHECK(x.state().queue.empty());
  auto got = x.at(512, 64);
  CHECK(std::equal(got.begin(), got.end(), some_bytes(64).bytes().begin()));
}

TEST_CASE("forged messages: a plan that lacks the addresses of its ranks is reported as broken, and not queued") {
  lone_stream x;
  proto::OperationBatch batch;
  auto& plan = *batch.add_plans();
  plan.set_comm_id(number);
  plan.set_epoch(1);
  plan.set_sequence(1);
  plan.mutable_collective()->set_count(8);
  for (uint64_t id : {peer, uint64_t{7}})
    plan.add_device_ids(id);
  device_handles members{{x.me(), x.me()}, {nullptr, caf::actor_cast<caf::strong_actor_ptr>(x.handle)}};
  x.send(operation_orders{std::make_shared<const proto::OperationBatch>(std::move(batch)),
                          std::make_shared<const device_handles>(std::move(members))});
  CHECK(x.reports == std::vector{proto::RankReport::BROKEN});
  REQUIRE(x.problems.size() == 1);
  CHECK(contains(x.problems[0], "a plan for 2 ranks has 0 input addresses"));
  CHECK(x.state().queue.empty());
}

// The reason is the route's, which goes with the blocks of the operation that breaks off.
TEST_CASE("forged messages: an operation whose block is wrong reports what was wrong with it") {
  const transfer_key block{.channel = number, .epoch = {1}, .sequence = {1}, .source = 0, .destination = 1};
  lone_stream x;
  x.order_broadcast();
  x.send(offer{block, {device_id{peer}, 4096, 64, nullptr}, x.me()});
  x.send(chunk{block, 0, some_bytes(63)});
  CHECK(x.reports == std::vector{proto::RankReport::BROKEN});
  REQUIRE(x.problems.size() == 1);
  CHECK(contains(x.problems[0], "a chunk of 63 bytes at offset 0 came that was not asked for"));
  CHECK(all_zero(x.at(0, 8192)));
}

TEST_CASE("forged messages: what is more than the block, or none of it, is not served") {
  lone_stream x;
  auto all = x.at(0, 8192);
  std::fill(all.begin(), all.end(), std::byte{'s'}); // for no transfer
  auto block = x.at(512, 100);
  std::fill(block.begin(), block.end(), std::byte{'x'});
  x.send_block(100);
  for (auto& forged :
       {pull{key, 0, 101}, pull{key, 100, 1}, pull{key, 99, 2}, pull{key, 101, 0}, pull{key, 1, 100},
        pull{key, UINT64_MAX, 2}, pull{key, 2, UINT64_MAX}, pull{key, UINT64_MAX, UINT64_MAX},
        pull{transfer_key{.channel = number + 1}, 0, 10}, pull{transfer_key{.channel = number, .epoch = {1}}, 0, 10},
        pull{transfer_key{.channel = number, .sequence = {1}}, 0, 10}}) {
    CAPTURE(forged.offset);
    CAPTURE(forged.bytes);
    x.send(forged);
    CHECK(x.chunks.empty());
  }
  CHECK(x.state().pulls_served == 0); // none of them is a sign of a receiver's life
  x.send(pull{key, 100, 0});          // and this is
  CHECK(x.state().pulls_served == 1);
  CHECK(x.chunks.empty());
  x.send(pull{key, 0, 100});
  x.send(pull{key, 99, 1});
  REQUIRE(x.chunks.size() == 2);
  CHECK(text_of(x.chunks[0].block) == std::string(100, 'x'));
  CHECK(x.chunks[1].offset == 99);
  CHECK(text_of(x.chunks[1].block) == "x");
  x.send(taken{transfer_key{.channel = number + 1}});
  CHECK(x.state().queue.size() == 1);
  x.send(taken{key});
  CHECK(x.state().queue.empty());
  x.send(pull{key, 0, 100}); // it is no longer on offer
  CHECK(x.chunks.size() == 2);
}

TEST_CASE("forged messages: a stream keeps a limited number of offers for later commands, and refuses the rest") {
  lone_stream x;
  auto offered = [&](epoch_number epoch, uint32_t index) {
    x.send(offer{transfer_key{.channel = 5, .epoch = epoch, .sequence = {1}, .index = index},
                 {device_id{peer}, 4096, 8, nullptr},
                 x.me()});
  };
  offered({1}, 0);
  offered({1}, 1);
  CHECK(x.refusals.empty());
  offered({1}, 2);
  REQUIRE(x.refusals.size() == 1);
  CHECK(x.refusals[0] == "device 0x7 keeps 2 offered blocks already, its limit");
  offered({0}, 0); // of a transfer: only a receive that is there waits for it
  REQUIRE(x.refusals.size() == 2);
  CHECK(x.refusals[1] == "no receive waits for transfer 5 on device 0x7");
  CHECK(x.state().incoming.size() == 2);
}

TEST_CASE("forged messages: a block that claims more bytes than have come is an error, and none are reserved") {
  deterministic_system x;
  for (auto claimed : {uint64_t{17}, uint64_t{1} << 40, UINT64_MAX}) {
    CAPTURE(claimed);
    std::vector<char> message;
    caf::binary_serializer sink{x.sys, message};
    REQUIRE_FALSE(sink(claimed));
    message.resize(message.size() + 16);
    caf::binary_deserializer source{x.sys, message};
    byte_block block;
    CHECK(source(block) == caf::sec::end_of_stream);
    CHECK(block.size() == 0);
  }
}
