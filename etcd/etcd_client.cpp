#include "etcd/etcd_client.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/endpoint.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/trust/private_file.hpp"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>

namespace ringmaster {

namespace {

using clock = std::chrono::steady_clock;

/// A member that is paused or cut off answers nothing: then the next one gets its chance.
constexpr etcd_client::limit one_attempt{700};
/// A campaign waits at a member until the leader ends. It is repeated now and then, since the member may be cut off.
constexpr etcd_client::limit one_campaign{3000};
constexpr etcd_client::limit look_every{50};

caf::expected<std::string> contents_of(const std::string& file, const char* what) {
  if (file.empty())
    return std::string{};
  std::ifstream in{file, std::ios::binary};
  std::string result{std::istreambuf_iterator<char>{in}, {}};
  if (!in || result.empty())
    return make_error(errc::io_error, fmt::format("cannot read the {} '{}' for etcd: it is missing, empty, or this user "
                                                  "may not read it",
                                                  what, file));
  return result;
}

caf::expected<std::string> secret_in(const std::string& file, const char* what) {
  constexpr size_t bytes_max = 1u << 16;
  return file.empty() ? std::string{} : read_private_file(file, what, bytes_max);
}

/// "host:port" of an endpoint, and whether it is TLS.
struct address {
  std::string target;
  bool secure = false;
};

std::optional<address> address_of(const std::string& text) {
  constexpr std::string_view plain = "http://", secure = "https://";
  address result;
  if (text.starts_with(secure))
    result = {text.substr(secure.size()), true};
  else if (text.starts_with(plain))
    result = {text.substr(plain.size()), false};
  if (result.target.ends_with('/'))
    result.target.pop_back();
  if (!parse_endpoint(result.target))
    return std::nullopt;
  return result;
}

grpc::ChannelArguments channel_settings() {
  grpc::ChannelArguments result;
  result.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  result.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 500);
  result.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  result.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  result.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  result.SetMaxReceiveMessageSize(-1);
  return result;
}

void limit_to(grpc::ClientContext& context, etcd_client::limit within) {
  context.set_deadline(std::chrono::system_clock::now() + within);
}

bool may_succeed_elsewhere(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE
         || status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED
         || status.error_code() == grpc::StatusCode::CANCELLED;
}

caf::error error_of(const grpc::Status& status, const char* what, const std::string& where) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::PERMISSION_DENIED:
      return make_error(errc::unauthenticated,
                        fmt::format("etcd at {} refuses to {}: {}; check coordinator.etcd-user, its password file and "
                                    "what etcd lets it do",
                                    where, what, status.error_message()));
    default:
      return make_error(errc::refused, fmt::format("etcd at {} cannot {}: {} (gRPC status {})", where, what,
                                                   status.error_message(), static_cast<int>(status.error_code())));
  }
}

} // namespace

bool is_etcd_endpoint(const std::string& text) {
  return address_of(text).has_value();
}

caf::expected<std::shared_ptr<etcd_client>> etcd_client::make(const etcd_access& to) {
  if (to.endpoints.empty())
    return invalid("coordinator.etcd names no member of etcd: give a list such as [\"http://127.0.0.1:2379\"]");
  std::shared_ptr<etcd_client> result{new etcd_client};
  grpc::SslCredentialsOptions tls;
  TRY(authority, contents_of(to.authority_file, "certificate authority"));
  TRY(certificate, contents_of(to.certificate_file, "certificate"));
  TRY(key, secret_in(to.key_file, "the key file for etcd"));
  TRY(password, secret_in(to.password_file, "the password file for etcd"));
  tls.pem_root_certs = std::move(*authority);
  tls.pem_cert_chain = std::move(*certificate);
  tls.pem_private_key = std::move(*key);
  if (tls.pem_cert_chain.empty() != tls.pem_private_key.empty())
    return invalid("coordinator.etcd-certificate and coordinator.etcd-key belong together: give both or none");
  result->user_ = to.user;
  result->password_ = std::move(*password);
  while (result->password_.ends_with('\n') || result->password_.ends_with('\r'))
    result->password_.pop_back();
  for (auto& each : to.endpoints) {
    auto where = address_of(each);
    if (!where)
      return invalid(fmt::format("coordinator.etcd has \"{}\": it must be \"http://HOST:PORT\" or \"https://HOST:PORT\"",
                                 each));
    auto channel = grpc::CreateCustomChannel(where->target,
                                             where->secure ? grpc::SslCredentials(tls)
                                                           : grpc::InsecureChannelCredentials(),
                                             channel_settings());
    result->members_.push_back(std::make_unique<member>(
      member{each, etcdserverpb::KV::NewStub(channel), etcdserverpb::Lease::NewStub(channel),
             etcdserverpb::Auth::NewStub(channel), v3electionpb::Election::NewStub(channel)}));
  }
  return result;
}

etcd_client::member& etcd_client::preferred(size_t after) {
  std::scoped_lock lock{mutex_};
  return *members_[(preferred_ + after) % members_.size()];
}

/// etcd names a user by a token, which it forgets after some minutes without a use.
caf::expected<std::string> etcd_client::token_from(member& from) {
  {
    std::scoped_lock lock{mutex_};
    if (user_.empty() || !token_.empty())
      return token_;
  }
  etcdserverpb::AuthenticateRequest request;
  request.set_name(user_);
  request.set_password(password_);
  etcdserverpb::AuthenticateResponse answer;
  grpc::ClientContext context;
  limit_to(context, one_attempt);
  const auto status = from.users->Authenticate(&context, request, &answer);
  if (!status.ok() && may_succeed_elsewhere(status))
    return make_error(errc::unreachable, status.error_message());
  if (!status.ok()) // etcd's status of a wrong password is that of a wrong argument
    return make_error(errc::unauthenticated,
                      fmt::format("etcd at {} does not accept the user \"{}\": {}; check coordinator.etcd-user and "
                                  "coordinator.etcd-password-file",
                                  from.where, user_, status.error_message()));
  std::scoped_lock lock{mutex_};
  token_ = answer.token();
  return token_;
}

/// The first time a member that is not connected is left at once. Then each gets its time to come back: gRPC connects only
/// while a call waits for that.
caf::error etcd_client::call(const char* what, limit within, const attempt& once) {
  const auto give_up = clock::now() + within;
  std::string latest = "none was asked";
  bool had_old_token = false;
  for (size_t i = 0;; ++i) {
    auto& to = preferred(i);
    const auto left = std::chrono::ceil<limit>(give_up - clock::now());
    if (left.count() <= 0)
      return make_error(errc::unreachable, fmt::format("no member of etcd could {} within {}: {}", what,
                                                       duration_text(within), latest));
    auto token = token_from(to);
    if (!token && code_of(token.error()) != errc::unreachable)
      return std::move(token.error());
    grpc::ClientContext context;
    limit_to(context, members_.size() > 1 ? std::min(left, one_attempt) : left);
    context.set_wait_for_ready(i >= members_.size());
    if (token && !token->empty())
      context.AddMetadata("token", *token);
    const auto status = token ? once(to, context)
                              : grpc::Status{grpc::StatusCode::UNAVAILABLE, render(token.error())};
    if (status.ok()) {
      std::scoped_lock lock{mutex_};
      preferred_ = (preferred_ + i) % members_.size();
      return caf::none;
    }
    if (!user_.empty() && status.error_code() == grpc::StatusCode::UNAUTHENTICATED && !std::exchange(had_old_token, true)) {
      std::scoped_lock lock{mutex_};
      token_.clear();
      --i; // the same member, with a new token
      continue;
    }
    if (!may_succeed_elsewhere(status))
      return error_of(status, what, to.where);
    if (status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED || i < members_.size())
      latest = fmt::format("{}: {}", to.where, status.error_message());
    if (i + 1 >= members_.size() && status.error_code() == grpc::StatusCode::UNAVAILABLE) // such as while none leads
      std::this_thread::sleep_for(std::min<limit>(look_every, left));
  }
}

caf::expected<etcdserverpb::RangeResponse> etcd_client::range(const etcdserverpb::RangeRequest& x, limit within) {
  etcdserverpb::RangeResponse answer;
  RETURN_ERROR(call("read", within, [&](member& at, grpc::ClientContext& context) {
    return at.keys->Range(&context, x, &answer);
  }));
  return answer;
}

caf::expected<etcdserverpb::TxnResponse> etcd_client::transact(const etcdserverpb::TxnRequest& x, limit within) {
  etcdserverpb::TxnResponse answer;
  RETURN_ERROR(call("write", within, [&](member& at, grpc::ClientContext& context) {
    return at.keys->Txn(&context, x, &answer);
  }));
  return answer;
}

caf::expected<etcdserverpb::LeaseGrantResponse> etcd_client::grant(const etcdserverpb::LeaseGrantRequest& x,
                                                                   limit within) {
  etcdserverpb::LeaseGrantResponse answer;
  RETURN_ERROR(call("grant a lease", within, [&](member& at, grpc::ClientContext& context) {
    return at.leases->LeaseGrant(&context, x, &answer);
  }));
  return answer;
}

caf::error etcd_client::revoke(int64_t lease, limit within) {
  return call("end a lease", within, [&](member& at, grpc::ClientContext& context) {
    etcdserverpb::LeaseRevokeRequest request;
    request.set_id(lease);
    etcdserverpb::LeaseRevokeResponse answer;
    const auto status = at.leases->LeaseRevoke(&context, request, &answer);
    return status.error_code() == grpc::StatusCode::NOT_FOUND ? grpc::Status::OK : status;
  });
}

caf::expected<etcdserverpb::LeaseKeepAliveResponse> etcd_client::keep_alive(int64_t lease, limit within) {
  etcdserverpb::LeaseKeepAliveResponse answer;
  RETURN_ERROR(call("renew a lease", within, [&](member& at, grpc::ClientContext& context) {
    etcdserverpb::LeaseKeepAliveRequest request;
    request.set_id(lease);
    auto stream = at.leases->LeaseKeepAlive(&context);
    if (stream->Write(request) && stream->Read(&answer)) {
      context.TryCancel(); // the stream would stay open for further ones
      stream->Finish();
      return grpc::Status::OK;
    }
    auto status = stream->Finish();
    return status.ok() ? grpc::Status{grpc::StatusCode::UNAVAILABLE, "it closed the connection"} : status;
  }));
  return answer;
}

caf::expected<v3electionpb::LeaderKey> etcd_client::campaign(const v3electionpb::CampaignRequest& x, limit within,
                                                             const std::function<bool()>& stop) {
  const auto give_up = clock::now() + within;
  v3electionpb::CampaignResponse answer;
  for (size_t i = 0;; ++i) {
    const auto left = std::chrono::ceil<limit>(give_up - clock::now());
    if (left.count() <= 0)
      return make_error(errc::timed_out, fmt::format("another coordinator leads, after {}", duration_text(within)));
    auto& at = preferred(i);
    auto token = token_from(at);
    if (!token && code_of(token.error()) != errc::unreachable)
      return std::move(token.error());
    grpc::ClientContext context;
    limit_to(context, std::min(left, one_campaign));
    context.set_wait_for_ready(i >= members_.size());
    if (token && !token->empty())
      context.AddMetadata("token", *token);
    grpc::CompletionQueue events;
    grpc::Status status;
    auto call = at.elections->AsyncCampaign(&context, x, &events);
    call->Finish(&answer, &status, &events);
    void* tag = nullptr;
    bool ok = false, stopped = false;
    while (events.AsyncNext(&tag, &ok, std::chrono::system_clock::now() + look_every)
           == grpc::CompletionQueue::TIMEOUT)
      if (!stopped && stop()) {
        stopped = true;
        context.TryCancel();
      }
    events.Shutdown();
    if (stopped)
      return make_error(errc::aborted, "stopped while another coordinator leads");
    if (status.ok())
      return answer.leader();
    if (!may_succeed_elsewhere(status))
      return error_of(status, "elect a coordinator", at.where);
    if (i + 1 >= members_.size() && status.error_code() == grpc::StatusCode::UNAVAILABLE)
      std::this_thread::sleep_for(look_every);
  }
}

caf::expected<v3electionpb::LeaderResponse> etcd_client::leader(const v3electionpb::LeaderRequest& x, limit within) {
  v3electionpb::LeaderResponse answer;
  RETURN_ERROR(call("name the leader", within, [&](member& at, grpc::ClientContext& context) {
    return at.elections->Leader(&context, x, &answer);
  }));
  return answer;
}

} // namespace ringmaster
