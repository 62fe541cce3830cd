// A rank's collectives, one by one: each fills in its part of the call.
#include "client/rank_communicator.hpp"

namespace ringmaster {

namespace {

using counts = std::vector<uint64_t>;
using part = proto::RankCall::Part;

part part_of(proto::CollectiveKind kind, const rank_buffers& buffers, uint64_t count, proto::DataType datatype,
             uint32_t root = 0) {
  part result;
  auto& what = *result.mutable_collective();
  what.set_kind(kind);
  what.set_count(count);
  what.set_datatype(datatype);
  what.set_root(root);
  result.set_input(buffers.input);
  result.set_output(buffers.output);
  result.set_in_place(buffers.in_place);
  return result;
}

part reducing(part x, const reduction_choice& how) {
  auto& what = *x.mutable_collective();
  what.set_op(how.op);
  what.set_user_op(how.user_op);
  if (how.op == gpu_sim::PREMUL_SUM)
    what.add_factors(how.factor);
  return x;
}

part with_counts(part x, const counts& blocks) {
  x.mutable_collective()->mutable_counts()->Add(blocks.begin(), blocks.end());
  return x;
}

part transfer(uint64_t address, uint64_t count, proto::DataType datatype, uint32_t peer, bool receives) {
  auto result = part_of(proto::SEND_RECV, {receives ? 0 : address, receives ? address : 0}, count, datatype);
  result.mutable_collective()->set_peer(peer);
  result.set_receives(receives);
  return result;
}

} // namespace

work rank_communicator::all_reduce(const rank_buffers& buffers, uint64_t count, proto::DataType datatype,
                                   const reduction_choice& how, const call_options& opts) {
  return call(reducing(part_of(proto::ALL_REDUCE, buffers, count, datatype), how), opts);
}

work rank_communicator::reduce(const rank_buffers& buffers, uint64_t count, proto::DataType datatype, uint32_t root,
                               const reduction_choice& how, const call_options& opts) {
  return call(reducing(part_of(proto::REDUCE, buffers, count, datatype, root), how), opts);
}

work rank_communicator::broadcast(const rank_buffers& buffers, uint64_t count, proto::DataType datatype, uint32_t root,
                                  const call_options& opts) {
  return call(part_of(proto::BROADCAST, buffers, count, datatype, root), opts);
}

work rank_communicator::all_gather(const rank_buffers& buffers, uint64_t count, proto::DataType datatype,
                                   const call_options& opts) {
  return call(part_of(proto::ALL_GATHER, buffers, count, datatype), opts);
}

work rank_communicator::reduce_scatter(const rank_buffers& buffers, uint64_t count, proto::DataType datatype,
                                       const reduction_choice& how, const call_options& opts) {
  return call(reducing(part_of(proto::REDUCE_SCATTER, buffers, count, datatype), how), opts);
}

work rank_communicator::all_to_all(const rank_buffers& buffers, uint64_t count, proto::DataType datatype,
                                   const call_options& opts) {
  return call(part_of(proto::ALL_TO_ALL, buffers, count, datatype), opts);
}

work rank_communicator::gather(const rank_buffers& buffers, uint64_t count, proto::DataType datatype, uint32_t root,
                               const call_options& opts) {
  return call(part_of(proto::GATHER, buffers, count, datatype, root), opts);
}

work rank_communicator::scatter(const rank_buffers& buffers, uint64_t count, proto::DataType datatype, uint32_t root,
                                const call_options& opts) {
  return call(part_of(proto::SCATTER, buffers, count, datatype, root), opts);
}

work rank_communicator::all_gather_v(const rank_buffers& buffers, counts blocks, proto::DataType datatype,
                                     const call_options& opts) {
  return call(with_counts(part_of(proto::ALL_GATHER, buffers, 0, datatype), blocks), opts);
}

work rank_communicator::reduce_scatter_v(const rank_buffers& buffers, counts blocks, proto::DataType datatype,
                                         const reduction_choice& how, const call_options& opts) {
  return call(with_counts(reducing(part_of(proto::REDUCE_SCATTER, buffers, 0, datatype), how), blocks), opts);
}

work rank_communicator::gather_v(const rank_buffers& buffers, counts blocks, proto::DataType datatype, uint32_t root,
                                 const call_options& opts) {
  return call(with_counts(part_of(proto::GATHER, buffers, 0, datatype, root), blocks), opts);
}

work rank_communicator::scatter_v(const rank_buffers& buffers, counts blocks, proto::DataType datatype, uint32_t root,
                                  const call_options& opts) {
  return call(with_counts(part_of(proto::SCATTER, buffers, 0, datatype, root), blocks), opts);
}

work rank_communicator::all_to_all_v(const rank_buffers& buffers, counts send_counts, counts receive_counts,
                                     proto::DataType datatype, const call_options& opts) {
  auto mine = with_counts(part_of(proto::ALL_TO_ALL, buffers, 0, datatype), send_counts);
  mine.mutable_receive_counts()->Add(receive_counts.begin(), receive_counts.end());
  return call(std::move(mine), opts);
}

work rank_communicator::barrier(const call_options& opts) {
  return call(part_of(proto::BARRIER, {}, 0, proto::FLOAT32), opts);
}

work rank_communicator::send(uint64_t address, uint64_t count, proto::DataType datatype, uint32_t to,
                             const call_options& opts) {
  return call(transfer(address, count, datatype, to, false), opts);
}

work rank_communicator::receive(uint64_t address, uint64_t count, proto::DataType datatype, uint32_t from,
                                const call_options& opts) {
  return call(transfer(address, count, datatype, from, true), opts);
}

} // namespace ringmaster
