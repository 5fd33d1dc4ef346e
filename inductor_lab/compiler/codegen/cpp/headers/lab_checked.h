// The option `check_bounds` uses these types instead of plain pointers.

//@ lab_checked
// A pointer with the bounds of its buffer.  An access out of bounds is recorded in `fault`; nothing is
// read or written.  `first` is the offset of the pointer from the start of the buffer, in elements.
#include <type_traits>
struct lab_fault {
    int64_t found, number, index, length;
};
template <class T> struct lab_checked {
    T* start;
    int64_t first, length;
    lab_fault* fault;
    int64_t number;

    bool holds(int64_t index, int64_t count) const {
        const int64_t begin = first + index, end = begin + count;
        if (count <= 0 || (begin >= 0 && end <= length)) return true;
        if (!fault->found) *fault = {1, number, begin < 0 ? begin : end - 1, length};
        return false;
    }
    T& operator[](int64_t index) const {
        static thread_local typename std::remove_const<T>::type nothing;
        if (holds(index, 1)) return start[first + index];
        nothing = {};
        return nothing;
    }
    lab_checked operator+(int64_t more) const { return {start, first + more, length, fault, number}; }
};
template <class T> static inline void lab_fetch(lab_checked<T>, int64_t) {}
template <class T> static inline void lab_stream(lab_checked<T> to, const T* from, int64_t count) {
    if (to.holds(0, count)) lab_stream(to.start + to.first, from, count);
}
template <class T>
static inline void lab_stream_lines(lab_checked<T> to, const T* from, int64_t count) {
    if (to.holds(0, count)) lab_stream_lines(to.start + to.first, from, count);
}
static inline void lab_widen(float* to, lab_checked<const lab_half> from, int64_t count) {
    if (from.holds(0, count)) lab_widen(to, from.start + from.first, count);
}
static inline void lab_narrow(lab_checked<lab_half> to, const float* from, int64_t count) {
    if (to.holds(0, count)) lab_narrow(to.start + to.first, from, count);
}
template <class T>
static inline void lab_transpose(T* to, int64_t width, lab_checked<const T> from, int64_t stride,
                                 int64_t rows, int64_t columns) {
    const bool some = rows > 0 && columns > 0;
    if (some && from.holds(0, stride * (rows - 1) + columns)) {
        lab_transpose(to, width, from.start + from.first, stride, rows, columns);
    }
}
template <class T>
static inline void lab_transpose(lab_checked<T> to, int64_t width, const T* from, int64_t stride,
                                 int64_t rows, int64_t columns) {
    const bool some = rows > 0 && columns > 0;
    if (some && to.holds(0, width * (columns - 1) + rows)) {
        lab_transpose(to.start + to.first, width, from, stride, rows, columns);
    }
}
