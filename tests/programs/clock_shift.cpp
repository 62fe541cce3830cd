// Preloaded into processes of a test (LD_PRELOAD): their wall clock is set back or forward while they run. The seconds
// stand in the file that CLOCK_SHIFT_FILE names, and may change. The kernel's clock stays, so waits until a time of the
// wall clock would not notice; a process that makes such a wait says so and aborts.
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

namespace {

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

/// How far the wall clock is shifted now.
time_t shift_s() {
  static const char* const file = std::getenv("CLOCK_SHIFT_FILE");
  const auto fd = file == nullptr ? -1 : ::open(file, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return 0;
  char text[32] = {};
  const auto length = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  return length > 0 ? std::atol(text) : 0;
}

[[noreturn]] void refuse(const char* what) {
  std::fprintf(stderr, "clock_shift: process %d waits by the wall clock, in %s\n", static_cast<int>(::getpid()), what);
  std::abort();
}

} // namespace

extern "C" {

int clock_gettime(clockid_t which, timespec* to) noexcept {
  static auto* const original = next<decltype(clock_gettime)>("clock_gettime");
  const auto result = original(which, to);
  if (result == 0 && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
    to->tv_sec += shift_s();
  return result;
}

int gettimeofday(timeval* __restrict to, void* __restrict zone) noexcept {
  static auto* const original = next<decltype(gettimeofday)>("gettimeofday");
  const auto result = original(to, zone);
  if (result == 0)
    to->tv_sec += shift_s();
  return result;
}

time_t time(time_t* to) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (to != nullptr)
    *to = now.tv_sec;
  return now.tv_sec;
}

int pthread_cond_timedwait(pthread_cond_t*, pthread_mutex_t*, const timespec*) {
  refuse("pthread_cond_timedwait");
}

int pthread_cond_clockwait(pthread_cond_t* changed, pthread_mutex_t* guard, clockid_t which, const timespec* until) {
  static auto* const original = next<decltype(pthread_cond_clockwait)>("pthread_cond_clockwait");
  if (which == CLOCK_REALTIME)
    refuse("pthread_cond_clockwait");
  return original(changed, guard, which, until);
}

int pthread_mutex_timedlock(pthread_mutex_t*, const timespec*) noexcept {
  refuse("pthread_mutex_timedlock");
}

int sem_timedwait(sem_t*, const timespec*) {
  refuse("sem_timedwait");
}

int clock_nanosleep(clockid_t which, int flags, const timespec* time, timespec* left) {
  static auto* const original = next<decltype(clock_nanosleep)>("clock_nanosleep");
  if (which == CLOCK_REALTIME && (flags & TIMER_ABSTIME) != 0)
    refuse("clock_nanosleep");
  return original(which, flags, time, left);
}

} // extern "C"
