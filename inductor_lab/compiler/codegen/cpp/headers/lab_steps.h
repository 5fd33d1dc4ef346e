// Calls functions one after another (`accelerate/step_runs.py`).

//@ lab_run_steps
#include <stdint.h>
#include <utility>
// A step is a row of int64: the address of a function, the number of its arguments, and two numbers
// for each of them: a slot and an offset.  The argument is slots[slot] + offset, an address or a
// number.  All arguments are 64 bits wide, so a function takes them as if they were numbers.
typedef int (*lab_step_caller)(int64_t function, const int64_t* arguments);
template <class> struct lab_step_of;
template <std::size_t... n> struct lab_step_of<std::index_sequence<n...>> {
    static int call(int64_t function, const int64_t* arguments) {
        (void)arguments;
        return ((int (*)(decltype(int64_t(n))...))function)(arguments[n]...);
    }
};
template <std::size_t... n>
static inline lab_step_caller lab_caller(int64_t count, std::index_sequence<n...>) {
    static const lab_step_caller callers[] = {&lab_step_of<std::make_index_sequence<n>>::call...};
    return callers[count];
}
// Returns 0, or of the first function that does not return 0: its result and 2^32 times its number,
// from 1.
enum { lab_most_arguments = 64 };
static inline int64_t lab_run_steps(const int64_t* steps, int64_t count, const int64_t* slots) {
    int64_t arguments[lab_most_arguments];
    for (int64_t number = 1; number <= count; number++) {
        const int64_t function = *steps++, width = *steps++;
        for (int64_t k = 0; k < width; k++, steps += 2) arguments[k] = slots[steps[0]] + steps[1];
        const lab_step_caller call = lab_caller(width, std::make_index_sequence<lab_most_arguments + 1>());
        const int status = call(function, arguments);
        if (status) return number << 32 | (uint32_t)status;
    }
    return 0;
}
