"""What GPU faults mean and what they ask for: a table as data, a policy, rules over a history.

Pure: no file is read here (`headway.gpu_faults.policy_file` takes the text of an override).
"""
