// Threads for the parallel regions of kernels, for a machine that other programs use too.
//
// GCC compiles `#pragma omp parallel` to a call of GOMP_parallel.  libgomp's runs the region once on
// each of n threads, and returns when all of them have done so.  If another program occupies one
// processor, each region waits until that thread gets its turn, which takes milliseconds.  On a quiet
// machine it is the fastest way, and is used.  A machine is busy if the system often stops our threads
// to run others (struct Load).
//
// On a busy machine a region is done in parts, four for each thread.  A part asks for its number as it
// would ask for the number of its thread.  Every thread takes the parts of its own share first, then
// those that are left in other shares.  The caller takes parts too, so a region ends without the
// threads that did not come in time.
//
//     share of thread 0 (caller)   share of thread 1      A share counts the parts that were taken.
//     [ 0 | 1 | 2 | 3 ]            [ 4 | 5 | 6 | 7 ]      The count contains the number of the region,
//                                                         so a late thread takes nothing of the next.
#include <atomic>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

typedef void (*Region)(void*);
extern "C" void GOMP_parallel(Region run, void* data, unsigned threads, unsigned flags);
extern "C" int omp_get_max_threads();
extern "C" int omp_get_num_procs();
extern "C" int omp_get_num_threads();
extern "C" int omp_get_thread_num();

namespace {

const uint64_t parts_of_a_thread = 4;
const unsigned most_threads = 256;
const int spins = 2000;  // some 50 microseconds: then a thread sleeps until there is work
const size_t least_stack = 8 << 20;
const double busy_rate = 70, quiet_rate = 50;  // times a second of computing that a thread is stopped
const double busy_seconds = 0.2, quiet_seconds = 1;  // of computing, until the machine counts as such
const double others_share = 0.25;  // of a processor that other programs use if the machine is busy
const double first_trial = 1, last_trial = 64;  // seconds of computing until libgomp is tried again

thread_local unsigned part_number = 0, part_count = 0;

inline void relax() {
#if defined(__SSE__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

unsigned float_mode() {
#if defined(__SSE__)
    return _mm_getcsr();
#else
    return 0;
#endif
}

void set_float_mode(unsigned mode) {
#if defined(__SSE__)
    if (_mm_getcsr() != mode) _mm_setcsr(mode);
#endif
}

void wait_while(std::atomic<uint32_t>& word, uint32_t value) {
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void wake(std::atomic<uint32_t>& word, int count) {
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

struct alignas(64) Share {
    std::atomic<uint64_t> taken{0};  // number of the region << 32 | parts that were taken
};

struct Team {
    alignas(64) std::atomic<uint32_t> region{0};
    alignas(64) std::atomic<int> sleeping{0};
    alignas(64) std::atomic<unsigned> unfinished{0};
    alignas(64) std::atomic<bool> used{false};
    std::atomic<unsigned> threads{0};
    Share shares[most_threads];
    Region run = nullptr;
    void* data = nullptr;
    unsigned mode = 0, started = 0;  // `started` threads help the caller

    void run_part(unsigned number, unsigned count) {
        part_number = number;
        part_count = count;
        run(data);
        part_count = 0;
    }

    void help(uint32_t number, unsigned share) {
        const unsigned count = threads.load(std::memory_order_relaxed);
        for (unsigned k = 0; k < count; k++) {
            const unsigned from = (share + k) % count;
            std::atomic<uint64_t>& taken = shares[from].taken;
            uint64_t seen = taken.load(std::memory_order_acquire);
            while (seen >> 32 == number && (uint32_t)seen < parts_of_a_thread) {
                if (!taken.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel)) continue;
                set_float_mode(mode);
                run_part(from * parts_of_a_thread + (uint32_t)seen, count * parts_of_a_thread);
                unfinished.fetch_sub(1, std::memory_order_acq_rel);
                seen = taken.load(std::memory_order_acquire);
            }
        }
    }

    // A thread: `share` is its number, from 1.
    void live(unsigned share) {
        uint32_t last = 0;
        for (;;) {
            uint32_t number = region.load(std::memory_order_acquire);
            for (int k = 0; number == last && k < spins; k++) {
                relax();
                number = region.load(std::memory_order_acquire);
            }
            if (number == last) {
                sleeping.fetch_add(1);
                wait_while(region, last);
                sleeping.fetch_sub(1);
                continue;
            }
            last = number;
            if (share < threads.load(std::memory_order_relaxed)) help(number, share);
        }
    }

    void all(Region given_run, void* given_data, unsigned count) {
        run = given_run;
        data = given_data;
        mode = float_mode();
        threads.store(count, std::memory_order_relaxed);
        unfinished.store(count * parts_of_a_thread, std::memory_order_relaxed);
        const uint32_t number = region.load(std::memory_order_relaxed) + 1;
        for (unsigned share = 0; share < count; share++)
            shares[share].taken.store((uint64_t)number << 32, std::memory_order_release);
        region.store(number);
        if (sleeping.load()) wake(region, (int)count - 1);
        help(number, 0);
        for (int k = 0; unfinished.load(std::memory_order_acquire); k++)
            if (k < spins) relax(); else sched_yield();
    }
};

Team* team = nullptr;

void* live(void* share) {
    team->live((unsigned)(uintptr_t)share);
    return nullptr;
}

bool started(void* (*run)(void*), uintptr_t given) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the threads of the program
    pthread_attr_t made;
    size_t stack = 0;
    pthread_attr_init(&made);
    pthread_attr_getstacksize(&made, &stack);
    if (stack < least_stack) pthread_attr_setstacksize(&made, least_stack);
    pthread_attr_setdetachstate(&made, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    const bool good = !pthread_create(&thread, &made, run, (void*)given);
    pthread_attr_destroy(&made);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return good;
}

// ---- a busy machine ----------------------------------------------------------------------------

std::atomic<uint32_t> changes{0};  // between busy and quiet: odd if the machine is busy
std::atomic<int> wanted{0};  // 1: the team always; 0: if the machine is busy; -1: never

bool is_busy() { return changes.load(std::memory_order_relaxed) & 1; }

void nothing(void*) {}

// After a region, libgomp's threads spin for some milliseconds on processors that the team needs.
// They sleep soon if libgomp has more threads than there are processors (GOMP_SPINCOUNT in its
// manual).  So this thread has a region with threads of its own, and keeps them, asleep, while the
// machine is busy.
void* keep_threads(void* change) {
    rlimit space;  // libgomp ends the process if there is no memory for a thread
    if (getrlimit(RLIMIT_AS, &space) || space.rlim_cur != RLIM_INFINITY) return nullptr;
    const int spare = omp_get_num_procs() - omp_get_max_threads();
    GOMP_parallel(nothing, nullptr, (spare > 0 ? spare : 0) + 2, 0);
    const uint32_t begun = (uint32_t)(uintptr_t)change;
    while (changes.load() == begun) wait_while(changes, begun);
    return nullptr;
}

void set_busy(bool now) {
    uint32_t seen = changes.load();
    if ((seen & 1) == now || !changes.compare_exchange_strong(seen, seen + 1)) return;
    if (now) started(keep_threads, seen + 1);
    else wake(changes, INT_MAX);
}

// Clock ticks of the processors that this process may use, since the system started.
struct Processors {
    double all = 0, idle = 0, count = 0;

    static Processors now() {
        Processors found;
        cpu_set_t allowed;
        FILE* file = sched_getaffinity(getpid(), sizeof allowed, &allowed) ? nullptr : fopen("/proc/stat", "re");
        char line[512];
        while (file && fgets(line, sizeof line, file)) {
            int cpu;
            double t[8] = {};  // user, nice, system, idle, waiting for disks, interrupts (2), stolen
            if (sscanf(line, "cpu%d %lf %lf %lf %lf %lf %lf %lf %lf",
                       &cpu, &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) < 5
                || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &allowed)) continue;
            for (double ticks : t) found.all += ticks;
            found.idle += t[3] + t[4];
            found.count++;
        }
        if (file) fclose(file);
        return found;
    }

    // How many processors other programs have used since `before`; this one computed for `seconds`.
    // 0 if the system does not say it.
    double others_since(const Processors& before, double seconds) const {
        const double passed = (all - before.all) / count;
        if (!(passed > 0) || before.count != count) return 0;
        return (passed * count - (idle - before.idle) - seconds * sysconf(_SC_CLK_TCK)) / passed;
    }
};

// Decides if the machine is busy, by how often the system has stopped a thread of this process to run
// another one.  With the team, these can be two threads of the process: one of the team and one of
// libgomp.  So libgomp is tried again after a while if other programs use little; if threads are
// stopped again, then after twice as long.
struct Load {
    std::atomic<bool> used{false};
    int64_t next = 0;  // when to look again, in milliseconds
    double seconds = 0, trial = first_trial, until_trial = first_trial;
    long stops = 0;
    Processors processors;

    void look() {
        timespec now;
        clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
        const int64_t time = now.tv_sec * 1000 + now.tv_nsec / 1000000;
        if (used.exchange(true, std::memory_order_acquire)) return;
        if (time >= next) {
            next = time + 50;
            count();
        }
        used.store(false, std::memory_order_release);
    }

    void count() {
        rusage all;
        getrusage(RUSAGE_SELF, &all);
        const double so_far = all.ru_utime.tv_sec + all.ru_stime.tv_sec
                            + 1e-6 * (all.ru_utime.tv_usec + all.ru_stime.tv_usec);
        const double passed = so_far - seconds, rate = (all.ru_nivcsw - stops) / passed;
        if (passed < (is_busy() ? quiet_seconds : busy_seconds)) return;
        if (!wanted.load() && seconds) {
            const double others = is_busy() ? Processors::now().others_since(processors, passed) : 0;
            decide(passed, rate, others);
            if (is_busy()) processors = Processors::now();
        }
        seconds = so_far;
        stops = all.ru_nivcsw;
    }

    // After `passed` seconds of computing, in which threads were stopped `rate` times a second, and
    // other programs used `others` processors.
    void decide(double passed, double rate, double others) {
        if (!is_busy()) {
            set_busy(rate > busy_rate);
            if (!is_busy()) trial = first_trial;
            until_trial = trial;
        } else if (rate < quiet_rate) {
            set_busy(false);
        } else if (others < others_share && (until_trial -= passed) <= 0) {
            trial = trial < last_trial ? 2 * trial : trial;
            set_busy(false);
        }
    }
};

Load load;

void after_fork() {  // the threads are those of the parent, and libgomp would wait for them
    team = new Team;
    wanted.store(1);
    changes.store(1);
    load.used.store(false);
}

struct Begin {
    Begin() {
        team = new Team;  // never destroyed: its threads may run until the process ends
        pthread_atfork(nullptr, nullptr, after_fork);
    }
} begin;

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void lab_use_team(int value) {
    wanted.store(value);
    set_busy(value > 0);
}

EXPORT int lab_uses_team() { return is_busy(); }

EXPORT void __wrap_GOMP_parallel(Region run, void* data, unsigned threads, unsigned flags) {
    if (!part_count) load.look();
    if (!part_count && !is_busy()) {
        GOMP_parallel(run, data, threads, flags);
        return;
    }
    if (!threads) threads = (unsigned)omp_get_max_threads();
    if (threads > most_threads) threads = most_threads;
    if (part_count || threads < 2 || team->used.exchange(true, std::memory_order_acquire)) {
        // inside a part, or while another thread of the program uses the team: one thread
        const unsigned number = part_number, count = part_count;
        part_number = 0;
        part_count = 1;
        run(data);
        part_number = number;
        part_count = count;
        return;
    }
    Team* mine = team;
    while (mine->started + 1 < threads && started(live, mine->started + 1)) mine->started++;
    mine->all(run, data, threads);
    mine->used.store(false, std::memory_order_release);
}

EXPORT int __wrap_omp_get_thread_num() {
    return part_count ? (int)part_number : omp_get_thread_num();
}

EXPORT int __wrap_omp_get_num_threads() {
    return part_count ? (int)part_count : omp_get_num_threads();
}
