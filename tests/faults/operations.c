/* Counts the file operations of a process below one folder, and kills it or lets the disk be full at a chosen one.
 *
 *   cc -shared -fPIC -O1 -o operations.so operations.c -ldl;  LD_PRELOAD=./operations.so program
 *
 * The program calls operations_watch(folder, nth, fault) itself, after it has loaded everything: nothing is counted
 * before. The counter is in memory that forked processes share. A kill hits the whole process group, as a power cut
 * would. A torn write is a kill after the first half of its bytes. With the disk full, everything that takes space fails
 * from the nth operation on, of a write there the second half of its bytes; deleting and renaming work.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { COUNT, KILL, FULL, TORN };
enum { GOES_ON, FAILS, HALF };
enum { LOG_BYTES = 1 << 24 };

static char folder[PATH_MAX];
static size_t folder_length;
static int nth, fault;
static struct shared { int count; int logged; char log[LOG_BYTES]; } *shared;

void operations_watch(const char *path, int n, int what) {
    if (!shared)
        shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared->count = shared->logged = 0;
    nth = n;
    fault = what;
    folder_length = strlen(path);
    memcpy(folder, path, folder_length + 1);
}

int operations_count(void) { return shared ? shared->count : 0; }

const char *operations_log(void) { return shared ? shared->log : ""; }

static int is_watched(const char *path) { return !strncmp(path, folder, folder_length); }

static void die(void) {
    kill(0, SIGKILL);
    for (;;) pause();
}

/* Returns FAILS if the operation is to fail; errno is set. HALF: half of the bytes of a write are to be written. */
static int meets(const char *operation, const char *path, int takes_space, size_t bytes) {
    if (!folder_length || !path || !is_watched(path)) return GOES_ON;
    int number = __sync_add_and_fetch(&shared->count, 1);
    if (shared->logged < LOG_BYTES - PATH_MAX - 32)
        shared->logged += snprintf(shared->log + shared->logged, PATH_MAX + 32, "%s%s %s\n", takes_space ? "+" : "",
                                   operation, path + folder_length);
    if (number == nth && bytes > 1 && (fault == TORN || fault == FULL)) return HALF;
    if (number == nth && (fault == KILL || fault == TORN)) die();
    if (fault == FULL && number >= nth && takes_space) {
        errno = ENOSPC;
        return FAILS;
    }
    return GOES_ON;
}

static const char *path_of(int descriptor, char *buffer) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, buffer, PATH_MAX - 1);
    if (length <= 0) return NULL;
    buffer[length] = 0;
    return buffer;
}

/* An absolute path; links are not followed. */
static const char *absolute(int at, const char *path, char *buffer) {
    if (!path || *path == '/' || !folder_length) return path;
    char base[PATH_MAX];
    if (at == AT_FDCWD ? !getcwd(base, sizeof base) : !path_of(at, base)) return NULL;
    snprintf(buffer, 2 * PATH_MAX, "%s/%s", base, path);
    return buffer;
}

static int meets_at(const char *operation, int at, const char *path, int takes_space) {
    char buffer[2 * PATH_MAX];
    int saved = errno;
    const char *full = absolute(at, path, buffer);
    errno = saved;
    return meets(operation, full, takes_space, 0);
}

static int meets_write(const char *operation, int descriptor, int takes_space, size_t bytes) {
    if (!folder_length) return GOES_ON;
    char buffer[PATH_MAX];
    int saved = errno;
    const char *path = path_of(descriptor, buffer);
    errno = saved;
    return meets(operation, path, takes_space, bytes);
}

static int meets_fd(const char *operation, int descriptor, int takes_space) {
    return meets_write(operation, descriptor, takes_space, 0);
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define WATCH_FD(name, result, takes_space, parameters, arguments) \
    result name parameters { \
        REAL(name); \
        return meets_fd(#name, fd, takes_space) ? (result)-1 : real arguments; \
    }

#define WATCH_WRITE(name, parameters, whole, half) \
    ssize_t name parameters { \
        REAL(name); \
        int met = meets_write(#name, fd, 1, n); \
        if (met == FAILS) return -1; \
        if (met == GOES_ON) return real whole; \
        ssize_t written = real half; \
        if (fault == TORN) die(); \
        return written; \
    }

/* A copy may be asked for more than its source has. */
static size_t half_of(int from, size_t n) {
    struct stat is;
    return !fstat(from, &is) && (size_t)is.st_size < n ? (size_t)is.st_size / 2 : n / 2;
}

WATCH_WRITE(write, (int fd, const void *data, size_t n), (fd, data, n), (fd, data, n / 2))
WATCH_WRITE(pwrite, (int fd, const void *data, size_t n, off_t at), (fd, data, n, at), (fd, data, n / 2, at))
WATCH_WRITE(pwrite64, (int fd, const void *data, size_t n, off64_t at), (fd, data, n, at), (fd, data, n / 2, at))
WATCH_WRITE(copy_file_range, (int from, off64_t *in, int fd, off64_t *out, size_t n, unsigned flags),
            (from, in, fd, out, n, flags), (from, in, fd, out, half_of(from, n), flags))
WATCH_WRITE(sendfile, (int fd, int from, off_t *at, size_t n), (fd, from, at, n), (fd, from, at, half_of(from, n)))
WATCH_WRITE(sendfile64, (int fd, int from, off64_t *at, size_t n), (fd, from, at, n), (fd, from, at, half_of(from, n)))

/* Half of the bytes, of one part or of the first parts and some of the next. */
static ssize_t write_half(ssize_t (*real)(int, const struct iovec *, int), int fd, const struct iovec *data, size_t half) {
    ssize_t written = 0;
    for (; half; data++) {
        struct iovec part = {data->iov_base, data->iov_len < half ? data->iov_len : half};
        ssize_t n = part.iov_len ? real(fd, &part, 1) : 0;
        if (n < 0) return written ? written : -1;
        written += n;
        if ((size_t)n < part.iov_len) return written;
        half -= part.iov_len;
    }
    return written;
}

ssize_t writev(int fd, const struct iovec *data, int n) {
    REAL(writev);
    size_t bytes = 0;
    for (int i = 0; i < n; i++) bytes += data[i].iov_len;
    int met = meets_write("writev", fd, 1, bytes);
    if (met == FAILS) return -1;
    if (met == GOES_ON) return real(fd, data, n);
    ssize_t written = write_half(real, fd, data, bytes / 2);
    if (fault == TORN) die();
    return written;
}

WATCH_FD(fsync, int, 0, (int fd), (fd))
WATCH_FD(fdatasync, int, 0, (int fd), (fd))
WATCH_FD(ftruncate, int, 0, (int fd, off_t n), (fd, n))
WATCH_FD(ftruncate64, int, 0, (int fd, off64_t n), (fd, n))
WATCH_FD(posix_fallocate, int, 1, (int fd, off_t at, off_t n), (fd, at, n))

#define WATCH_PATH(name, at, watched, takes_space, parameters, arguments) \
    int name parameters { \
        REAL(name); \
        return meets_at(#name, at, watched, takes_space) ? -1 : real arguments; \
    }

WATCH_PATH(rename, AT_FDCWD, to, 0, (const char *from, const char *to), (from, to))
WATCH_PATH(renameat, b, to, 0, (int a, const char *from, int b, const char *to), (a, from, b, to))
WATCH_PATH(renameat2, b, to, 0, (int a, const char *from, int b, const char *to, unsigned flags), (a, from, b, to, flags))
WATCH_PATH(link, AT_FDCWD, to, 1, (const char *from, const char *to), (from, to))
WATCH_PATH(symlink, AT_FDCWD, to, 1, (const char *from, const char *to), (from, to))
WATCH_PATH(unlink, AT_FDCWD, path, 0, (const char *path), (path))
WATCH_PATH(unlinkat, at, path, 0, (int at, const char *path, int flags), (at, path, flags))
WATCH_PATH(rmdir, AT_FDCWD, path, 0, (const char *path), (path))
WATCH_PATH(mkdir, AT_FDCWD, path, 1, (const char *path, mode_t mode), (path, mode))
WATCH_PATH(mkdirat, at, path, 1, (int at, const char *path, mode_t mode), (at, path, mode))
WATCH_PATH(truncate, AT_FDCWD, path, 0, (const char *path, off_t n), (path, n))
WATCH_PATH(truncate64, AT_FDCWD, path, 0, (const char *path, off64_t n), (path, n))

static int writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)); }

#define WATCH_OPEN(name, at, parameters, arguments) \
    int name parameters { \
        REAL(name); \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
        va_end(more); \
        if (writes(flags) && meets_at("open", at, path, flags & O_CREAT)) return -1; \
        return real arguments; \
    }

WATCH_OPEN(open, AT_FDCWD, (const char *path, int flags, ...), (path, flags, mode))
WATCH_OPEN(open64, AT_FDCWD, (const char *path, int flags, ...), (path, flags, mode))
WATCH_OPEN(openat, at, (int at, const char *path, int flags, ...), (at, path, flags, mode))
WATCH_OPEN(openat64, at, (int at, const char *path, int flags, ...), (at, path, flags, mode))

/* C's own streams do not come back to the functions above. */
#define WATCH_STREAM(name) \
    FILE *name(const char *path, const char *mode) { \
        REAL(name); \
        return strpbrk(mode, "wa+") && meets_at("fopen", AT_FDCWD, path, 1) ? NULL : real(path, mode); \
    }

WATCH_STREAM(fopen)
WATCH_STREAM(fopen64)

size_t fwrite(const void *data, size_t size, size_t n, FILE *stream) {
    static int (*flush)(FILE *);
    REAL(fwrite);
    if (!flush) flush = (int (*)(FILE *))dlsym(RTLD_NEXT, "fflush");
    int met = meets_write("fwrite", fileno(stream), 1, size * n);
    if (met == FAILS) return 0;
    if (met == GOES_ON) return real(data, size, n, stream);
    size_t written = real(data, 1, size * n / 2, stream);
    flush(stream);
    if (fault == TORN) die();
    errno = ENOSPC; /* a stream has no short write: the rest of it failed */
    return size ? written / size : 0;
}

int fflush(FILE *stream) {
    REAL(fflush);
    return stream && meets_fd("fflush", fileno(stream), 1) ? EOF : real(stream);
}

int fclose(FILE *stream) {
    REAL(fclose);
    int flags = folder_length ? fcntl(fileno(stream), F_GETFL) : O_RDONLY;
    int fails = flags != -1 && writes(flags) && meets_fd("fclose", fileno(stream), 1);
    int result = real(stream);
    if (fails) errno = ENOSPC;
    return fails ? EOF : result;
}
