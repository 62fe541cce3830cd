#include "actors/direct_worker.hpp"

namespace ringmaster {

caf::behavior direct_worker(caf::event_based_actor* self, std::shared_ptr<direct_job> job, communicator_actor owner,
                            uint64_t number) {
  self->send(self, atom::flush_v);
  return {
    [=](atom::flush) {
      auto slices = job->execution.slices();
      auto slice = job->next++;
      if (slice >= slices)
        return self->quit();
      job->execution.run(slice);
      if (++job->done == slices)
        self->send(owner, atom::resume_v, number);
      self->send(self, atom::flush_v);
    },
  };
}

} // namespace ringmaster
