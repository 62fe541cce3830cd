#pragma once

#include "etcd/election.grpc.pb.h"
#include "etcd/kv.grpc.pb.h"

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ringmaster {

/// How an etcd cluster is reached.
struct etcd_access {
  std::vector<std::string> endpoints; ///< Its members: "http://host:2379" or "https://host:2379".
  std::string authority_file;         ///< PEM, of who signed the members' certificates; empty: the system's.
  std::string certificate_file, key_file; ///< PEM, this client's own; empty: none.
  std::string user, password_file;        ///< Empty: no user.
};

/// Whether it is "http://host:port" or "https://host:port".
bool is_etcd_endpoint(const std::string& text);

/// A client of an etcd cluster. A call goes to one member, and to the next if that does not answer in time, until `limit`
/// has passed; so a call can be carried out twice, and is made so that this does no harm. Calls block. Thread-safe.
///
/// Errors: unreachable, where no member answers (they have no majority, or are not there); refused, where one refuses;
/// unauthenticated, for a wrong user, password or certificate.
class etcd_client {
public:
  using limit = std::chrono::milliseconds;

  /// Connects to nothing yet. Errors: invalid_argument, io_error, for the files.
  static caf::expected<std::shared_ptr<etcd_client>> make(const etcd_access& to);

  caf::expected<etcdserverpb::RangeResponse> range(const etcdserverpb::RangeRequest& x, limit within);
  caf::expected<etcdserverpb::TxnResponse> transact(const etcdserverpb::TxnRequest& x, limit within);
  caf::expected<etcdserverpb::LeaseGrantResponse> grant(const etcdserverpb::LeaseGrantRequest& x, limit within);
  caf::error revoke(int64_t lease, limit within);
  /// Its TTL is 0 where there is no such lease.
  caf::expected<etcdserverpb::LeaseKeepAliveResponse> keep_alive(int64_t lease, limit within);
  /// Returns when this caller leads. Errors: aborted, when `stop` returned true; timed_out.
  caf::expected<v3electionpb::LeaderKey> campaign(const v3electionpb::CampaignRequest& x, limit within,
                                                  const std::function<bool()>& stop);
  /// Errors: refused, where there is no leader.
  caf::expected<v3electionpb::LeaderResponse> leader(const v3electionpb::LeaderRequest& x, limit within);

private:
  struct member {
    std::string where;
    std::unique_ptr<etcdserverpb::KV::Stub> keys;
    std::unique_ptr<etcdserverpb::Lease::Stub> leases;
    std::unique_ptr<etcdserverpb::Auth::Stub> users;
    std::unique_ptr<v3electionpb::Election::Stub> elections;
  };
  using attempt = std::function<grpc::Status(member&, grpc::ClientContext&)>;

  etcd_client() = default;
  /// One that `limit` leaves undecided goes to the next member.
  caf::error call(const char* what, limit within, const attempt& once);
  caf::expected<std::string> token_from(member& from);
  member& preferred(size_t after);

  std::vector<std::unique_ptr<member>> members_;
  std::string user_, password_;
  std::mutex mutex_; ///< For what follows.
  size_t preferred_ = 0;
  std::string token_; ///< Of the user; empty: not asked yet.
};

} // namespace ringmaster
