#include "training/measured/tuned_communications.hpp"

#include "training/language/collective_kind.hpp"

#include <memory>

namespace ringmaster::training {

namespace {

class tuned_times {
public:
  tuned_times(const training_job& job, const process_constants& machine) : job_(job), machine_(machine) {}

  double operator()(const pending& x) {
    const auto kind = collective_kind_of(x.what);
    plan_request request;
    request.world_size = kind == proto::SEND_RECV ? 2 : x.among.count;
    request.count = count_of(job_, x);
    request.peer = 1; // of a pair, from rank 0
    const auto work = work_in_process(*first_shared_memory(kind), request, bytes_of(job_.as), machine_);
    return machine_.training_s(kind) + (work ? estimate(*work, machine_).total_s() : 0); // of joint ones always
  }

private:
  const training_job& job_;
  process_constants machine_;
};

} // namespace

communication_times tuned_communications(const training_job& job, const process_constants& machine) {
  return tuned_times{job, machine};
}

} // namespace ringmaster::training
