#include "runtime/reduction/reduction.hpp"
#include "tests/support/simulated_client.hpp"

#include <cstring>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

template <class T>
byte_block block_of(const std::vector<T>& values) {
  return byte_block::of(values);
}

gpu_sim::TransferReduction reduction_of(int op, int datatype = proto::FLOAT64) {
  gpu_sim::TransferReduction result;
  result.set_op(static_cast<gpu_sim::ReduceOp>(op));
  result.set_datatype(static_cast<proto::DataType>(datatype));
  return result;
}

/// Two devices. A transfer goes from the start of the first one's memory to the start of the second one's.
struct reducing_pair {
  explicit reducing_pair(bool offer_memory = true, uint64_t seed = 1)
    : cluster{[&] {
        simulation_options result;
        result.seed = seed;
        result.offer_memory = offer_memory;
        return result;
      }()} {
    comm = cluster.init(2);
  }

  uint64_t device(int rank) const { return comm.devices(rank).deviceid().value(); }
  uint64_t base(int rank) const { return comm.devices(rank).minmemaddr().value(); }

  template <class T>
  void fill(int rank, const std::vector<T>& values) {
    host.wait_for(host.copy_in(device(rank), base(rank), block_of(values)));
  }
  template <class T>
  std::vector<T> received(size_t count) {
    const auto block = cluster.copy_out(device(1), base(1), count * sizeof(T));
    const auto values = block.template as<T>();
    return {values.begin(), values.end()};
  }

  gpu_sim::BeginSendResponse send(uint64_t bytes, const gpu_sim::TransferReduction* how) {
    gpu_sim::BeginSendRequest request;
    request.mutable_sendbuffaddr()->set_value(base(0));
    request.set_numbytes(bytes);
    request.mutable_dstrank()->set_value(1);
    if (how != nullptr)
      *request.mutable_reduction() = *how;
    return host.call<gpu_sim::BeginSendResponse>(device(0), request);
  }
  std::string receive(uint64_t transfer, uint64_t bytes, const gpu_sim::TransferReduction* how = nullptr) {
    gpu_sim::BeginReceiveRequest request;
    request.mutable_streamid()->set_value(transfer);
    request.mutable_recvbuffaddr()->set_value(base(1));
    request.set_numbytes(bytes);
    if (how != nullptr)
      *request.mutable_reduction() = *how;
    return host.call<gpu_sim::BeginReceiveResponse>(device(1), request).error();
  }
  void transfer(uint64_t bytes, const gpu_sim::TransferReduction& how) {
    const auto sent = send(bytes, &how);
    REQUIRE(sent.error() == "");
    REQUIRE(receive(sent.streamid().value(), bytes) == "");
    CHECK(host.ended(device(1), sent.streamid().value()).error() == "");
    CHECK(host.ended(device(0), sent.streamid().value()).status() == gpu_sim::SUCCESS);
  }

  simulated_cluster cluster;
  simulated_client host{cluster};
  gpu_sim::CommInitResponse comm;
};

/// `count` numbers, which the datatype can hold and whose products it can.
template <class T>
std::vector<T> some_values(size_t count, int first) {
  std::vector<T> result;
  for (size_t i = 0; i < count; ++i)
    result.push_back(static_cast<T>((static_cast<int>(i) * 7 + first) % 11));
  return result;
}

template <class T>
void check_reduced(proto::DataType datatype, size_t count) {
  for (bool offer_memory : {true, false})
    for (int op : {gpu_sim::SUM, gpu_sim::PROD, gpu_sim::MIN, gpu_sim::MAX}) {
      CAPTURE(name_of(datatype));
      CAPTURE(offer_memory);
      CAPTURE(op);
      reducing_pair x{offer_memory, count % 7 + 1};
      const auto sent = some_values<T>(count, 1), present = some_values<T>(count, 5);
      x.fill(0, sent);
      x.fill(1, present);
      x.transfer(count * sizeof(T), reduction_of(op, datatype));
      std::vector<T> expected(count);
      reduce(datatype, static_cast<gpu_sim::ReduceOp>(op), reinterpret_cast<const std::byte*>(sent.data()),
             reinterpret_cast<const std::byte*>(present.data()), reinterpret_cast<std::byte*>(expected.data()), count);
      CHECK(x.received<T>(count) == expected);
    }
}

} // namespace

TEST_CASE("transfer reduction: the receiver reduces what arrives into its range, by every route") {
  check_reduced<double>(proto::FLOAT64, 25);
  check_reduced<float>(proto::FLOAT32, 77);
  check_reduced<int32_t>(proto::INT32, 1);
  check_reduced<int8_t>(proto::INT8, 201);
  check_reduced<double>(proto::FLOAT64, 0);
  reducing_pair x;
  x.fill<double>(0, {1, 2});
  x.fill<double>(1, {10, 20, 30});
  x.transfer(16, reduction_of(gpu_sim::SUM));
  x.transfer(16, reduction_of(gpu_sim::SUM));
  CHECK(x.received<double>(3) == std::vector<double>{12, 24, 30});
}

TEST_CASE("transfer reduction: bytes from outside may be cut within an element") {
  for (size_t piece : {1, 3, 7, 8, 11, 80}) {
    CAPTURE(piece);
    reducing_pair x;
    const auto sent = some_values<double>(10, 1), present = some_values<double>(10, 4);
    x.fill(1, present);
    const auto how = reduction_of(gpu_sim::SUM);
    REQUIRE(x.receive(4711, 80, &how) == "");
    std::string bytes(80, '\0');
    std::memcpy(bytes.data(), sent.data(), bytes.size());
    for (size_t at = 0; at < bytes.size(); at += piece)
      REQUIRE(x.host.feed(x.device(1), 4711, bytes.substr(at, piece)) == "");
    CHECK(x.host.ended(x.device(1), 4711).status() == gpu_sim::SUCCESS);
    auto sums = present;
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i] += sent[i];
    CHECK(x.received<double>(10) == sums);
  }
}

TEST_CASE("transfer reduction: an element of which only a part has arrived is as it was") {
  reducing_pair x;
  x.fill<double>(1, {1, 2, 3});
  const auto how = reduction_of(gpu_sim::SUM);
  REQUIRE(x.receive(4711, 24, &how) == "");
  const double ten = 10;
  std::string bytes(12, '\0');
  std::memcpy(bytes.data(), &ten, sizeof ten);
  REQUIRE(x.host.feed(x.device(1), 4711, bytes) == "");
  CHECK(contains(x.host.ended(x.device(1), 4711).error(), "was not complete within"));
  CHECK(x.received<double>(3) == std::vector<double>{11, 2, 3});
}

TEST_CASE("transfer reduction: after an interruption each element is as it was or is reduced") {
  constexpr size_t count = 512;
  int cut_short = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    reducing_pair x{false, seed};
    x.fill(0, std::vector<double>(count, 100));
    x.fill(1, some_values<double>(count, 3));
    const auto present = some_values<double>(count, 3);
    const auto how = reduction_of(gpu_sim::SUM);
    const auto transfer = x.send(count * sizeof(double), &how).streamid().value();
    REQUIRE(x.receive(transfer, count * sizeof(double)) == "");
    for (uint64_t step = 0; step < seed * 4; ++step)
      x.cluster.step();
    x.cluster.inject(x.device(0), proto::FaultRequest{});
    const auto end = x.host.ended(x.device(1), transfer);
    const auto found = x.received<double>(count);
    size_t reduced = 0;
    for (size_t i = 0; i < count; ++i) {
      CHECK((found[i] == present[i] || found[i] == present[i] + 100));
      reduced += found[i] == present[i] ? 0 : 1;
    }
    CHECK((end.status() == gpu_sim::FAILED || reduced == count));
    cut_short += reduced > 0 && reduced < count ? 1 : 0;
  }
  CHECK(cut_short > 0);
}

TEST_CASE("transfer reduction: an impossible one is refused with a sentence, at either end") {
  reducing_pair x;
  auto check = [&](uint64_t bytes, const gpu_sim::TransferReduction& how, const std::string& why) {
    const auto sent = x.send(bytes, &how);
    CHECK(sent.error() == why);
    CHECK(sent.code() == static_cast<uint32_t>(errc::invalid_argument));
    CHECK(x.receive(4711, bytes, &how) == why);
  };
  check(12, reduction_of(gpu_sim::SUM),
        "a transfer that reduces has whole elements, and 12 bytes are no multiple of the 8 bytes of a float64");
  check(6, reduction_of(gpu_sim::MIN, proto::FLOAT32),
        "a transfer that reduces has whole elements, and 6 bytes are no multiple of the 4 bytes of a float32");
  check(16, reduction_of(gpu_sim::AVG), "a transfer reduces by sum, prod, min or max, not by avg");
  check(16, reduction_of(77), "a transfer reduces by sum, prod, min or max, not by number 77");
  check(16, reduction_of(gpu_sim::SUM, 999), "there is no datatype of number 999");
}

TEST_CASE("transfer reduction: one end suffices, and both must want the same") {
  reducing_pair x;
  x.fill<double>(0, {1, 5});
  x.fill<double>(1, {3, 3});
  const auto least = reduction_of(gpu_sim::MIN), most = reduction_of(gpu_sim::MAX);
  for (auto* by_sender : {static_cast<const gpu_sim::TransferReduction*>(nullptr), &most}) {
    const auto transfer = x.send(16, by_sender).streamid().value();
    REQUIRE(x.receive(transfer, 16, &most) == "");
    CHECK(x.host.ended(x.device(1), transfer).error() == "");
    CHECK(x.received<double>(2) == std::vector<double>{3, 5});
  }
  const auto transfer = x.send(16, &least).streamid().value();
  REQUIRE(x.receive(transfer, 16, &most) == "");
  for (int rank : {0, 1})
    CHECK(contains(x.host.ended(x.device(rank), transfer).error(),
                   "the sender wants the min of float64, the receiver the max of float64: only one end need name it"));
  CHECK(x.received<double>(2) == std::vector<double>{3, 5});
}
