#include "runtime/trust/greeting.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/trust/permissions.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace ringmaster {

namespace {

constexpr std::string_view challenge_mark = "ring-ask", answer_mark = "ring-ans";
constexpr uint32_t greeting_version = 2;
constexpr size_t mark_bytes = 8, prologue_bytes = 16, nonce_bytes = sizeof(greeting_nonce),
                 name_at = prologue_bytes + nonce_bytes;
constexpr auto accepted = std::byte{1};

enum class method : uint8_t { none = 0, secret = 1 };
enum class purpose : uint8_t { control = 1, bulk = 2 };

std::byte purpose_of(listener_kind kind) {
  return static_cast<std::byte>(kind == listener_kind::bulk_link ? purpose::bulk : purpose::control);
}

std::byte method_of(const credentials& own) {
  return static_cast<std::byte>(own.secret ? method::secret : method::none);
}

using prologue = std::array<std::byte, prologue_bytes>;

prologue prologue_of(std::string_view mark, const credentials& own, listener_kind kind) {
  prologue result{};
  std::memcpy(result.data(), mark.data(), mark_bytes);
  for (size_t i = 0; i < sizeof greeting_version; ++i)
    result[mark_bytes + i] = static_cast<std::byte>(greeting_version >> (8 * i));
  result[12] = method_of(own);
  result[13] = purpose_of(kind);
  result[14] = static_cast<std::byte>(kind);
  result[15] = static_cast<std::byte>(own.own.as) << 4 | static_cast<std::byte>(own.protects(kind));
  return result;
}

/// The parts of a challenge or an answer that are judged.
struct prologue_view {
  std::span<const std::byte> bytes;

  uint32_t version() const {
    uint32_t result = 0;
    for (size_t i = 0; i < sizeof result; ++i)
      result |= std::to_integer<uint32_t>(bytes[mark_bytes + i]) << (8 * i);
    return result;
  }
  bool proves() const { return bytes[12] != static_cast<std::byte>(method::none); }
  std::byte cipher() const { return bytes[15] & std::byte{15}; }
  bool encrypts() const { return cipher() != static_cast<std::byte>(protection::none); }
  bool protects_as(protection x) const { return cipher() == static_cast<std::byte>(x); }
  bool knows_method() const { return bytes[12] <= static_cast<std::byte>(method::secret); }
  role as() const { return static_cast<role>(bytes[15] >> 4); }
  bool knows_role() const { return as() <= role::observer; }
  bool is_for(listener_kind kind) const {
    return bytes[13] == purpose_of(kind) && bytes[14] == static_cast<std::byte>(kind);
  }
  std::optional<listener_kind> kind() const {
    if (bytes[14] > static_cast<std::byte>(listener_kind::bulk_link))
      return std::nullopt;
    return static_cast<listener_kind>(bytes[14]);
  }
};

bool starts_as(std::span<const std::byte> bytes, std::string_view mark) {
  return std::memcmp(bytes.data(), mark.data(), std::min(bytes.size(), mark.size())) == 0;
}

greeting_proof hmac(const shared_secret& secret, std::string_view label,
                    std::initializer_list<std::span<const std::byte>> parts) {
  std::vector<unsigned char> message(label.begin(), label.end());
  for (auto part : parts)
    for (auto x : part)
      message.push_back(std::to_integer<unsigned char>(x));
  greeting_proof result{};
  unsigned size = 0;
  const auto* made = ::HMAC(::EVP_sha256(), secret.bytes().data(), static_cast<int>(secret.bytes().size()),
                            message.data(), message.size(), reinterpret_cast<unsigned char*>(result.data()), &size);
  ensure(made != nullptr && size == result.size(), "SHA-256 has 32 bytes");
  return result;
}

bool equal(std::span<const std::byte> left, std::span<const std::byte> right) {
  return left.size() == right.size() && ::CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

// None begins as another does, so a proof of one end is never one of the other.
constexpr std::string_view initiator_label = "ringmaster greeting 2: initiator\n",
                           acceptor_label = "ringmaster greeting 2: acceptor\n",
                           session_label = "ringmaster greeting 2: session key\n";

using bytes_view = std::span<const std::byte>;

/// Of the TLS connection; empty: there is none.
bytes_view binding_of(const std::optional<tls_peer>& tls) {
  return tls ? bytes_view{tls->binding} : bytes_view{};
}

greeting_proof initiator_proof(const shared_secret& secret, bytes_view binding, bytes_view challenge,
                               bytes_view answer) {
  return hmac(secret, initiator_label, {binding, challenge, answer.first(answer_bytes - sizeof(greeting_proof))});
}

greeting_proof acceptor_proof(const shared_secret& secret, bytes_view binding, bytes_view challenge,
                              bytes_view answer) {
  return hmac(secret, acceptor_label, {binding, challenge, answer});
}

/// Whom certificate and secret stand for together. A certificate of a host may do everything, and so may the cluster's
/// own secret: the other one of the two then says less. None: they are of different roles.
std::optional<peer_identity> identity_of(const std::optional<tls_peer>& tls,
                                         const std::optional<peer_identity>& secret) {
  if (!tls || !secret)
    return tls ? tls->identity : secret.value_or(peer_identity{});
  if (tls->identity.as == role::member)
    return peer_identity{secret->as, tls->identity.name};
  if (secret->as != role::member && secret->as != tls->identity.as)
    return std::nullopt;
  return tls->identity;
}

session session_of(peer_identity other, const std::optional<shared_secret>& secret, const std::optional<tls_peer>& tls,
                   bytes_view challenge, bytes_view answer) {
  session result{std::move(other), {}};
  if (secret)
    result.key = hmac(*secret, session_label, {binding_of(tls), challenge, answer});
  else if (tls)
    result.key = tls->binding;
  return result;
}

/// Of an answer.
std::string name_in(bytes_view answer) {
  std::string result;
  for (auto x : answer.subspan(name_at, secret_name_bytes_max))
    result += static_cast<char>(x);
  result.resize(std::min(result.find('\0'), result.size()));
  return result;
}

/// Whether a process of this role may connect to such a port. Clients reach a cluster by its coordinator only.
bool may_connect(role as, listener_kind to) {
  return to == listener_kind::coordinator || !is_client(as);
}

/// The secret of this role and name, at an end that has `own`. None: it cannot know it.
std::optional<shared_secret> secret_of(const credentials& own, const peer_identity& who) {
  if (who == own.own)
    return own.secret;
  if (own.own.as != role::member || who.as == role::member)
    return std::nullopt;
  return derive_secret(*own.secret, who.as, who.name);
}

/// What speaks so, if that is known of the bytes.
greeting_refusal speaker_of(bytes_view bytes) {
  constexpr std::string_view http[] = {"GET ", "POST", "PUT ", "HEAD", "DELE", "OPTI", "PATC", "CONN", "TRAC", "PRI "};
  if (bytes.size() >= 3 && bytes[0] == std::byte{0x16} && bytes[1] == std::byte{3} && bytes[2] <= std::byte{4})
    return greeting_refusal::tls;
  if (bytes.size() >= 4 && std::ranges::any_of(http, [&](auto x) { return starts_as(bytes.first(4), x); }))
    return greeting_refusal::http;
  if (bytes.size() >= 8 && starts_as(bytes, "ringlink")) // of bulk connections
    return greeting_refusal::older_version;
  constexpr auto client_or_server_handshake = std::byte{1}; // of CAF's protocol; then come two zeros and flags
  if (bytes.size() >= 8 && bytes[0] <= client_or_server_handshake && bytes[1] == std::byte{0}
      && bytes[2] == std::byte{0})
    return greeting_refusal::older_version;
  return greeting_refusal::other_bytes;
}

/// Whether the bytes are not those of a greeting, and enough have come to say what they are.
std::optional<greeting_refusal> other_speaker(bytes_view bytes, std::string_view mark) {
  if (starts_as(bytes, mark))
    return std::nullopt;
  const auto speaker = speaker_of(bytes);
  return speaker == greeting_refusal::other_bytes && bytes.size() < mark_bytes ? std::nullopt : std::optional{speaker};
}

constexpr std::string_view insecure_text = "requires no secret (trust.insecure), so it may be any process: ",
                           plain_text = "has no certificate and encrypts nothing, so it may be any process: ";

} // namespace

std::string_view name_of(listener_kind kind) {
  constexpr std::string_view names[] = {"coordinator", "node", "bulk connection"};
  return names[static_cast<size_t>(kind)];
}

std::string_view text_of(greeting_refusal why) {
  switch (why) {
    case greeting_refusal::cut_short: return "it closed the connection before its greeting was complete";
    case greeting_refusal::too_slow: return "it sent no complete greeting in time";
    case greeting_refusal::too_many: return "too many others connected before it had greeted";
    case greeting_refusal::http: return "it speaks HTTP, which ringmaster-gateway serves";
    case greeting_refusal::tls: return "it speaks TLS, and not as a process of Ringmaster does";
    case greeting_refusal::older_version: return "it is an older version of Ringmaster, which proves no secret";
    case greeting_refusal::other_bytes: return "its first bytes are not those of a process of Ringmaster";
    case greeting_refusal::other_greeting: return "it is another version of Ringmaster, with another greeting";
    case greeting_refusal::no_secret: return "it has no secret";
    case greeting_refusal::wrong_secret: return "it has another secret, or repeats what another process has said";
    case greeting_refusal::reflected: return "it sent this process's own challenge back";
    case greeting_refusal::other_purpose: return "it wants to connect to something else";
    case greeting_refusal::may_not_connect:
      return "it has a role that may not connect to nodes: clients, operators and observers connect to the coordinator";
    case greeting_refusal::two_roles: return "its certificate is of one role, and its secret of another";
    case greeting_refusal::not_derivable:
      return "its secret is not the one that this process has, which is of a role: processes that others connect to "
             "need the cluster's own secret";
    case greeting_refusal::not_required: return "it has a secret, and this process runs with trust.insecure";
    case greeting_refusal::not_encrypted: return "it has no certificate and encrypts nothing, and TLS is required";
    case greeting_refusal::encrypted: return "it requires TLS, and this process has no certificate (trust.certificate)";
    case greeting_refusal::no_certificate: return "it has no certificate";
    case greeting_refusal::expired_certificate: return "its certificate has expired, or is not valid yet";
    case greeting_refusal::other_authority: return "another authority has signed its certificate";
    case greeting_refusal::other_host: return "its certificate is for other hosts";
    case greeting_refusal::other_role: return "its certificate has a role that does not exist or is not for this end";
    case greeting_refusal::refuses_expired: return "it says that this process's certificate has expired";
    case greeting_refusal::refuses_authority: return "its authority has not signed this process's certificate";
    case greeting_refusal::refuses_host:
      return "this process's certificate has not the name by which it connects, or is not valid yet by its clock";
    case greeting_refusal::tls_failed: return "it does not speak TLS 1.3 as this process does";
    case greeting_refusal::other_protection: return "it has another value of trust.bulk";
  }
  return "for a reason that this version does not know";
}

greeting_nonce random_nonce() {
  greeting_nonce result;
  const auto made = ::RAND_bytes(reinterpret_cast<unsigned char*>(result.data()), static_cast<int>(result.size()));
  ensure(made == 1, "the system has random bytes");
  return result;
}

// -- the end that has accepted -----------------------------------------------------

greeting_acceptor::greeting_acceptor(credentials_ptr own, listener_kind as, const greeting_nonce& nonce)
  : own_(std::move(own)), kind_(as) {
  ensure(own_ != nullptr, "an end of a connection has credentials, if only those that prove nothing");
  const auto start = prologue_of(challenge_mark, *own_, kind_);
  std::ranges::copy(start, challenge_.begin());
  std::ranges::copy(nonce, challenge_.begin() + prologue_bytes);
}

std::array<std::byte, verdict_bytes> greeting_acceptor::verdict_of(greeting_refusal why) {
  std::array<std::byte, verdict_bytes> result{};
  result[0] = static_cast<std::byte>(why);
  return result;
}

greeting_acceptor::step greeting_acceptor::take(std::span<const std::byte> bytes) {
  ensure(bytes.size() <= wanted(), "no more is read than a greeting has");
  std::ranges::copy(bytes, answer_.begin() + static_cast<std::ptrdiff_t>(got_));
  got_ += bytes.size();
  const auto come = std::span<const std::byte>{answer_}.first(got_);
  if (got_ >= mark_bytes && starts_as(come, challenge_mark))
    return refused{greeting_refusal::reflected, verdict_of(greeting_refusal::reflected)};
  if (auto other = other_speaker(come, answer_mark))
    return refused{*other, verdict_of(*other)};
  // The length of what another version sends is not known.
  if (got_ >= prologue_bytes && prologue_view{come}.version() != greeting_version)
    return refused{greeting_refusal::other_greeting, verdict_of(greeting_refusal::other_greeting)};
  if (got_ >= prologue_bytes && awaits_tls()) {
    const auto why = why_in_plain();
    return refused{why, verdict_of(why)};
  }
  if (got_ < answer_bytes)
    return more{};
  return judge();
}

/// It has read the challenge, and does not want to shake hands.
greeting_refusal greeting_acceptor::why_in_plain() const {
  const prologue_view theirs{answer_};
  if (theirs.encrypts() && !theirs.protects_as(own_->protects(kind_)))
    return greeting_refusal::other_protection;
  if (theirs.encrypts() && own_->secret && !theirs.proves())
    return greeting_refusal::no_secret;
  if (theirs.encrypts() && !own_->secret && theirs.proves())
    return greeting_refusal::not_required;
  return greeting_refusal::not_encrypted;
}

greeting_acceptor::step greeting_acceptor::judge() const {
  const auto refuse = [](greeting_refusal why) { return refused{why, verdict_of(why)}; };
  const prologue_view theirs{answer_};
  if (!theirs.knows_method())
    return refuse(greeting_refusal::other_greeting);
  if (!theirs.is_for(kind_))
    return refuse(greeting_refusal::other_purpose);
  if (theirs.encrypts() != tls_.has_value())
    return refuse(tls_ ? greeting_refusal::not_encrypted : greeting_refusal::encrypted);
  if (!theirs.protects_as(own_->protects(kind_)))
    return refuse(greeting_refusal::other_protection);
  if (own_->secret && !theirs.proves())
    return refuse(greeting_refusal::no_secret);
  if (!own_->secret && theirs.proves())
    return refuse(greeting_refusal::not_required);
  std::optional<peer_identity> by_secret;
  std::optional<shared_secret> secret;
  if (own_->secret) {
    if (!theirs.knows_role() || theirs.as() == role::stranger)
      return refuse(greeting_refusal::other_greeting);
    by_secret = peer_identity{theirs.as(), name_in(answer_)};
    secret = secret_of(*own_, *by_secret);
    if (!secret)
      return refuse(greeting_refusal::not_derivable);
    const auto right = initiator_proof(*secret, binding_of(tls_), challenge_, answer_);
    if (!equal(right, bytes_view{answer_}.last(sizeof(greeting_proof))))
      return refuse(greeting_refusal::wrong_secret);
  }
  auto who = identity_of(tls_, by_secret);
  if (!who)
    return refuse(greeting_refusal::two_roles);
  if (!may_connect(who->as, kind_))
    return refuse(greeting_refusal::may_not_connect);
  admitted result{session_of(std::move(*who), secret, tls_, challenge_, answer_), {}};
  result.verdict[0] = accepted;
  if (secret)
    std::ranges::copy(acceptor_proof(*secret, binding_of(tls_), challenge_, answer_), result.verdict.begin() + 8);
  return result;
}

// -- the end that has connected ----------------------------------------------------

greeting_initiator::greeting_initiator(finder own, listener_kind whom, std::string where, const greeting_nonce& nonce)
  : find_own_(std::move(own)), kind_(whom), where_(std::move(where)), nonce_(nonce) {
  ensure(find_own_ != nullptr, "an end of a connection can find its credentials");
}

greeting_initiator::failed greeting_initiator::unauthenticated(const std::string& why) const {
  return {make_error(errc::unauthenticated, fmt::format("{} {}", where_, why)), {}};
}

greeting_initiator::failed greeting_initiator::no_agreement(const std::string& why) const {
  auto result = unauthenticated(why);
  result.last_words.assign(answer_.begin(), answer_.end());
  return result;
}

caf::error greeting_initiator::cut_short() const {
  return make_error(errc::unreachable, fmt::format("{} closed the connection before its greeting was complete: it may "
                                                   "have just exited, or is no process of ringmaster of this version",
                                                   where_));
}

caf::error greeting_initiator::check_start() const {
  const auto other = other_speaker(bytes_view{challenge_}.first(got_), challenge_mark);
  if (!other)
    return caf::none;
  if (*other == greeting_refusal::older_version)
    return make_error(errc::wrong_version,
                      fmt::format("{} is of an older version of Ringmaster, whose processes do not prove that they "
                                  "know a secret: all processes of a cluster must have the same version",
                                  where_));
  return make_error(errc::not_ringmaster,
                    fmt::format("{} accepts connections and does not answer as a process of ringmaster would: {}",
                                where_, text_of(*other)));
}

greeting_initiator::step greeting_initiator::take(std::span<const std::byte> bytes) {
  ensure(bytes.size() <= wanted(), "no more is read than a greeting has");
  auto* to = challenged_ ? verdict_.data() : challenge_.data();
  std::ranges::copy(bytes, to + got_);
  got_ += bytes.size();
  if (challenged_)
    return got_ < verdict_bytes ? step{more{}} : take_verdict();
  if (auto problem = check_start())
    return failed{std::move(problem), {}};
  return got_ < challenge_bytes ? step{more{}} : take_challenge();
}

void greeting_initiator::fill_answer() {
  std::ranges::copy(prologue_of(answer_mark, *own_, kind_), answer_.begin());
  std::ranges::copy(nonce_, answer_.begin() + prologue_bytes);
  std::ranges::transform(own_->own.name, answer_.begin() + name_at, [](char x) { return static_cast<std::byte>(x); });
}

caf::error greeting_initiator::choose_secret(role of_acceptor) {
  if (!own_->secret)
    return caf::none;
  const bool is_whole = own_->own.as == role::member;
  const bool knows_others = is_whole || own_->own.as == role::coordinator; // else it has the acceptor's secret at most
  other_ = {kind_ == listener_kind::coordinator ? role::coordinator : knows_others ? of_acceptor : own_->own.as, {}};
  if (of_acceptor == role::member || of_acceptor == own_->own.as)
    return caf::none;
  if (!is_whole)
    return make_error(errc::unauthenticated,
                      fmt::format("{} has the secret of a {}, and cannot check that of a {}, which this process has, "
                                  "{}: give it the cluster's own secret",
                                  where_, name_of(of_acceptor), name_of(own_->own.as), own_->origin));
  own_ = own_->derived(of_acceptor);
  return caf::none;
}

greeting_initiator::step greeting_initiator::take_challenge() {
  const prologue_view theirs{challenge_};
  if (theirs.version() != greeting_version || !theirs.knows_method() || !theirs.knows_role())
    return failed{make_error(errc::wrong_version,
                             fmt::format("{} has version {} of the greeting between processes of Ringmaster, and this "
                                         "process version {}: all processes of a cluster must have the same version",
                                         where_, theirs.version(), greeting_version)),
                  {}};
  if (!theirs.is_for(kind_))
    return failed{invalid(fmt::format("{} answers, but it is no ringmaster {}{}", where_, name_of(kind_),
                                      theirs.kind() ? fmt::format(": it is for a {}", name_of(*theirs.kind())) : "")),
                  {}};
  auto found = find_own_();
  own_ = found ? std::move(*found) : no_credentials();
  ensure(own_ != nullptr, "a process that has found its credentials has some");
  if (theirs.proves())
    if (auto problem = choose_secret(theirs.as()))
      return failed{std::move(problem), {}};
  fill_answer();
  if (!found && code_of(found.error()) == errc::invalid_config)
    return failed{std::move(found.error()), {answer_.begin(), answer_.end()}};
  if (!found && theirs.encrypts())
    return no_agreement(disagreement(theirs.proves(), true));
  if (!found)
    return no_agreement(theirs.proves() ? fmt::format("requires the secret of its cluster, and this process has none: "
                                                      "{}",
                                                      render(found.error()))
                                        : std::string{insecure_text} + "--insecure connects to it all the same");
  auto why = disagreement(theirs.proves(), theirs.encrypts());
  if (why.empty() && !theirs.protects_as(own_->protects(kind_)))
    why = "has another value of trust.bulk (encrypted, authenticated) than this process: all processes of a cluster "
          "need the same";
  if (!why.empty())
    return no_agreement(why);
  challenged_ = true;
  got_ = 0;
  if (own_->tls)
    return secure{own_->tls};
  prove();
  return answer{answer_};
}

std::string greeting_initiator::disagreement(bool they_prove, bool they_encrypt) const {
  if (they_encrypt && !own_->tls)
    return "requires TLS with certificates on both sides, and this process has none: name one by --certificate, --key "
           "and --authority (trust.certificate, trust.key, trust.authority)";
  if (!they_encrypt && own_->tls)
    return fmt::format("{}this process has the certificate {}, and connects to it only without", plain_text,
                       own_->tls->origin());
  if (they_prove && !own_->secret && own_->tls)
    return "requires the secret of its cluster beside a certificate, and this process has none: name it by "
           "--secret-file (trust.secret-file)";
  if (they_prove && !own_->secret)
    return "requires the secret of its cluster, and this process runs with --insecure (trust.insecure)";
  if (!they_prove && own_->secret && own_->tls)
    return fmt::format("requires no secret beside its certificate, and this process has {}: all processes of a cluster "
                       "need the same",
                       own_->origin);
  if (!they_prove && own_->secret)
    return fmt::format("{}this process has {}, and connects to it only with --insecure", insecure_text, own_->origin);
  return {};
}

void greeting_initiator::prove() {
  if (own_->secret)
    std::ranges::copy(initiator_proof(*own_->secret, binding_of(tls_), challenge_, answer_),
                      answer_.end() - static_cast<std::ptrdiff_t>(sizeof(greeting_proof)));
}

greeting_initiator::answer greeting_initiator::secured(tls_peer peer) {
  ensure(challenged_ && !tls_ && own_->tls != nullptr, "TLS is made once, after the challenge");
  tls_ = std::move(peer);
  prove();
  return answer{answer_};
}

caf::error greeting_initiator::not_secured(const std::string& why) const {
  return make_error(errc::unauthenticated, fmt::format("{} {}", where_, why));
}

greeting_initiator::step greeting_initiator::take_verdict() const {
  const auto why = static_cast<greeting_refusal>(verdict_[0]);
  if (why == greeting_refusal::wrong_secret)
    return unauthenticated(fmt::format("has another secret than this process, which has {}: all processes of a "
                                       "cluster need the same; copy the file that its log names, and name the copy by "
                                       "--secret-file (trust.secret-file)",
                                       own_->origin));
  if (why == greeting_refusal::too_many || why == greeting_refusal::too_slow)
    return failed{make_error(errc::unreachable, fmt::format("{} closed the connection: too many connect to it, or "
                                                            "this process was paused; try again",
                                                            where_)),
                  {}};
  if (verdict_[0] != accepted)
    return unauthenticated(fmt::format("refused this process: {}", text_of(why)));
  // The acceptor's certificate is a host's, which says less than its secret's role.
  const auto who = identity_of(tls_, own_->secret ? std::optional{other_} : std::nullopt).value_or(other_);
  if (!own_->secret)
    return admitted{session_of(who, own_->secret, tls_, challenge_, answer_), own_->protects(kind_)};
  if (!equal(acceptor_proof(*own_->secret, binding_of(tls_), challenge_, answer_), bytes_view{verdict_}.subspan(8)))
    return unauthenticated(fmt::format("does not know the secret that this process has, {}: another process has taken "
                                       "the address, or something between the two changes what they send",
                                       own_->origin));
  return admitted{session_of(who, own_->secret, tls_, challenge_, answer_), own_->protects(kind_)};
}

} // namespace ringmaster
