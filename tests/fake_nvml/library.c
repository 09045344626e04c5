/* A libnvidia-ml.so.1 with one GPU, for the real binding to load as it loads NVIDIA's.
 *
 * While the file named by FAKE_NVML_HANG exists, the question about power blocks for ever with every
 * signal blocked that can be, inside the library, as a call about a lost GPU does. Functions that are
 * missing here are unknown to the driver, as far as the binding can tell.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, TIMED_OUT = 10 };

struct device { int index; };
struct event {
    struct device *device;
    unsigned long long type, data;
    unsigned int gpu_instance, compute_instance;
};
struct pci {
    char legacy[16];
    unsigned int domain, bus, device, id, subsystem;
    char bus_id[32];
};
struct memory { unsigned long long total, free, used; };

static struct device only;
static int events_reported;

int nvmlInitWithFlags(unsigned int flags) { return flags; }
int nvmlShutdown(void) { return SUCCESS; }

int nvmlSystemGetDriverVersion(char *version, unsigned int size)
{
    snprintf(version, size, "580.95.05");
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned int *count)
{
    *count = 1;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, struct device **device)
{
    only.index = index;
    *device = &only;
    return SUCCESS;
}

int nvmlDeviceGetUUID(struct device *device, char *uuid, unsigned int size)
{
    snprintf(uuid, size, "GPU-c%d", device->index);
    return SUCCESS;
}

int nvmlDeviceGetName(struct device *device, char *name, unsigned int size)
{
    snprintf(name, size, "GPU of a compiled library %d", device->index);
    return SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(struct device *device, struct pci *pci)
{
    memset(pci, 0, sizeof *pci);
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000018:0%d:00.0", device->index);
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(struct device *device, struct memory *memory)
{
    (void)device;
    memory->total = 80ull << 30;
    memory->used = 60ull << 30;
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(struct device *device, unsigned int *milliwatts)
{
    const char *hang = getenv("FAKE_NVML_HANG");
    (void)device;
    if (hang && access(hang, F_OK) == 0) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
        for (;;)
            pause();
    }
    *milliwatts = 123456;
    return SUCCESS;
}

int nvmlEventSetCreate(struct device **set)
{
    *set = &only;
    return SUCCESS;
}

int nvmlDeviceGetSupportedEventTypes(struct device *device, unsigned long long *types)
{
    (void)device;
    *types = 0x8 | 0x10;
    return SUCCESS;
}

int nvmlDeviceRegisterEvents(struct device *device, unsigned long long types, struct device *set)
{
    return device == set && types == 0x8 ? SUCCESS : NOT_SUPPORTED;
}

int nvmlEventSetWait_v2(struct device *set, struct event *event, unsigned int milliseconds)
{
    if (events_reported++) {
        usleep(milliseconds * 1000);
        return TIMED_OUT;
    }
    event->device = set;
    event->type = 0x8;
    event->data = 79;
    event->gpu_instance = event->compute_instance = 0xFFFFFFFF;
    return SUCCESS;
}
