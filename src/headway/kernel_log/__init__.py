"""The grammar of kernel lines about GPUs and memory: prefixes, time stamps, faults, bursts.

Pure: what reads files, the kernel's buffer or the journal is `headway.exporter.kernel.log`.
"""
