#!/bin/bash
# Train on 2 machines with 4 GPUs each:
#
#     sbatch examples/slurm.sh my.yaml /shared/runs/first
#
# Two minutes before the time is up Slurm sends SIGTERM: the run saves and ends. Handed in again, by the same line, or
# put back into the queue by Slurm, it goes on from the last checkpoint, until the bundle is written.
#SBATCH --job-name=dragoman
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --time=24:00:00
#SBATCH --signal=TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail

config=$1
run=$2 # on a file system that all machines share
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p) # reads all: head would end scontrol by SIGPIPE
export OMP_NUM_THREADS=8 # cores over processes

arguments=("$config" --out "$run")
if compgen -G "$run/checkpoints/step_*" >/dev/null; then
    arguments=(--out "$run" --resume)
fi

srun --kill-on-bad-exit=1 torchrun --nnodes "$SLURM_NNODES" --nproc-per-node 4 --max-restarts 3 \
    --rdzv-backend c10d --rdzv-endpoint "$first:29500" --rdzv-id "$SLURM_JOB_ID" \
    -m dragoman train "${arguments[@]}"
