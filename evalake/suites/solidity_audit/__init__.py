"""The solidity_audit suite: does a model find the real vulnerability in a smart contract, and understand it?"""
